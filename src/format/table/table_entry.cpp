// SPDX-License-Identifier: Apache-2.0
#include "format/table/table_entry.h"

#include "format/table/table_format.h"
#include "format/table/table_source.h"

namespace feedline::format {
namespace {

Result<bool> is_table(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const auto place, find_table(storage, source, false));
  return place.has_value();
}

Result<TablePlace> table_of(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto place, find_table(*options.storage, source, true));
  if (place) return *std::move(place);
  return config_error("'" + source +
                      "' is no table: a .csv, .tsv or .jsonl file was expected, or a folder with "
                      "metadata.csv or metadata.jsonl");
}

Result<std::shared_ptr<const Format>> open_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TablePlace place, table_of(source, options));
  return TableFormat::open(source, place, options);
}

Result<Inspection> inspect_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TablePlace place, table_of(source, options));
  return TableFormat::inspect(source, place, options);
}

}  // namespace

const FormatEntry& table_entry() {
  static constexpr FormatEntry kEntry{"table", is_table, open_table, inspect_table};
  return kEntry;
}

}  // namespace feedline::format
