// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table_entry.h"

#include "format/text_tables/table_format.h"
#include "format/text_tables/table_source.h"

namespace feedline::format {
namespace {

Result<bool> is_table(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const auto locations, find_tables(storage, source, false));
  return locations.has_value();
}

Result<TableLocations> tables_of(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto locations, find_tables(*options.storage, source, true));
  if (locations) return *std::move(locations);
  return config_error("'" + source +
                      "' is not a table: expected .csv, .tsv, .jsonl or .json files, a folder of .csv, .tsv or .jsonl "
                      "files, or a folder with "
                      "metadata.csv, metadata.jsonl or metadata.parquet");
}

Result<std::shared_ptr<const Format>> open_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TableLocations locations, tables_of(source, options));
  return TableFormat::open(source, locations, options);
}

Result<Inspection> inspect_table(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const TableLocations locations, tables_of(source, options));
  return TableFormat::inspect(source, locations, options);
}

}  // namespace

const FormatEntry& table_entry() {
  static constexpr FormatEntry kEntry{"table", is_table, open_table, inspect_table};
  return kEntry;
}

}  // namespace feedline::format
