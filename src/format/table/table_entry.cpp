// SPDX-License-Identifier: Apache-2.0
#include "format/table/table_entry.h"

#include "format/table/table_format.h"
#include "format/table/table_source.h"

namespace feedline::format {
namespace {

Result<bool> is_table(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const auto places, find_tables(storage, source, false));
  return places.has_value();
}

Result<TablePlaces> tables_of(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto places, find_tables(*options.storage, source, true));
  if (places) return *std::move(places);
  return config_error("'" + source +
                      "' is not a table: expected .csv, .tsv, .jsonl or .json files, a folder of .csv, .tsv or .jsonl "
                      "files, or a folder with "
                      "metadata.csv, metadata.jsonl or metadata.parquet");
}

Result<std::shared_ptr<const Format>> open_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TablePlaces places, tables_of(source, options));
  return TableFormat::open(source, places, options);
}

Result<Inspection> inspect_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TablePlaces places, tables_of(source, options));
  return TableFormat::inspect(source, places, options);
}

}  // namespace

const FormatEntry& table_entry() {
  static constexpr FormatEntry kEntry{"table", is_table, open_table, inspect_table};
  return kEntry;
}

}  // namespace feedline::format
