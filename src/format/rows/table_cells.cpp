// SPDX-License-Identifier: Apache-2.0
#include "format/rows/table_cells.h"

#include <limits>
#include <utility>
#include <vector>

#include "format/sources/source_list.h"
#include "format/text_tables/table_source.h"

namespace feedline::format {
namespace {

// The text of a column, and the offsets of its cells.
struct ColumnText {
  SpilledArray<char> text;
  std::vector<std::uint64_t> offsets;
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? "" : path.substr(0, slash + 1);
}

TableColumnCells cells_of(TableColumn column) {
  TableColumnCells made{.name = std::move(column.name)};
  made.holds = column.there == 0       ? "nothing"
               : column.are_integers() ? "integers"
               : column.are_reals()    ? "numbers"
               : column.are_json()     ? "JSON"
               : column.are_bytes      ? "bytes"
                                       : "text";
  made.absent = std::move(column.absent);
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    if (made.holds == "integers") {
      const auto number = integer_in(column.cell(row));
      made.integers.push_back(number.value_or(0));
      if (!number) made.absent[row] = true;
    } else if (made.holds == "numbers") {
      const auto number = real_in(column.cell(row));
      made.reals.push_back(number.value_or(std::numeric_limits<double>::quiet_NaN()));
      if (!number) made.absent[row] = true;
    }
  }
  auto owner = std::make_shared<ColumnText>();
  owner->text = std::move(column.text);
  owner->offsets.push_back(0);
  const auto ends = column.ends.values();
  owner->offsets.insert(owner->offsets.end(), ends.begin(), ends.end());
  const auto text = owner->text.values();
  const TextCells::Chunk chunk{column.ends.size(), reinterpret_cast<const std::byte*>(owner->offsets.data()), true,
                               std::string_view(text.data(), text.size())};
  made.cells = std::make_shared<const TextCells>(
      TextCells{column.ends.size(), std::vector<TextCells::Chunk>{chunk}, std::move(owner)});
  return made;
}

// Returns the files of a Parquet table, which find_tables() does not return because the format "parquet" handles them.
Result<TableLocations> parquet_locations(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const auto files, shards_of(source, storage, "table"));
  TableLocations locations;
  for (const std::string& file : files) {
    if (!file.ends_with(".parquet"))
      return config_error("'" + source + "' is not a table: use .csv, .tsv, .jsonl, .json or .parquet files");
    locations.files.push_back({file, folder_of(file), ""});
  }
  return locations;
}

}  // namespace

Result<TableCells> read_table_cells(const std::shared_ptr<const storage::Storage>& storage, const std::string& source) {
  FEEDLINE_TRY(auto locations, find_tables(*storage, source, true));
  if (!locations) {
    FEEDLINE_TRY(locations, parquet_locations(source, *storage));
  }
  FEEDLINE_TRY(ReadTable read, read_tables(storage, *locations));
  TableCells cells{.folder = folder_of(locations->files.front().path), .unread = std::move(read.table.unread)};
  for (TableColumn& column : read.table.columns) cells.columns.push_back(cells_of(std::move(column)));
  return cells;
}

}  // namespace feedline::format
