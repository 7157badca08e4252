// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "format/compression/compression.h"
#include "format/text_tables/spilled_array.h"
#include "format/text_tables/text_rows.h"

namespace feedline::format {

// One column, with the text of its cells concatenated.
struct TableColumn {
  std::string name;
  SpilledArray<char> text = {};           // text of all cells
  SpilledArray<std::uint64_t> ends = {};  // end of each cell in text
  std::vector<bool> absent = {};
  // The number of cells that have a value, and how many of these are 64-bit integers, numbers, JSON values, markers of
  // missing values ("NA"), and integers of more than 64 bits.
  std::uint64_t there = 0, integers = 0, reals = 0, json = 0, missing = 0, too_large = 0;
  // The first row with a finite number, and the first row with a cell that is neither a number nor a marker of a
  // missing value.
  std::optional<std::uint64_t> first_number = {}, first_other = {};
  bool are_bytes = false;            // whether the cells are bytes
  std::string unit = {}, type = {};  // type of a column whose values have a further meaning: "us", "int64,
                                     // timestamp[us]"

  std::string_view cell(std::uint64_t row) const {
    const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return {text.values().data() + begin, ends[row] - begin};
  }
  bool are_integers() const { return integers > 0 && integers + missing == there; }
  bool are_numbers() const { return reals > 0 && reals + missing == there; }
  // Excludes columns with integers of more than 64 bits, which float64 would round.
  bool are_reals() const { return are_numbers() && too_large == 0; }
  // Returns whether the column has lists, objects, true or false, and possibly numbers.
  bool are_json() const { return json > 0 && json + reals == there; }
  void add(const Cell& cell);
  void append(const TableColumn& other);
};

// A table, in memory or, if it is large, in mapped files. Call seal() before reading cells.
struct Table {
  std::vector<TableColumn> columns;
  SpilledArray<std::uint64_t> lines = {};   // line number of each row, for messages
  std::vector<UnopenedColumn> unread = {};  // columns that were not read, and the reasons

  std::uint64_t rows() const { return lines.size(); }
  const TableColumn* find(std::string_view name) const;
  std::string names() const;
  void seal();
  // Adds a column with the same cell in each row.
  void add_constant(std::string name, const Cell& cell);
  // Appends the rows of another table. If only one table has a column, or the column could be read in only one, it is
  // absent in the rows of the other table.
  void append(Table other);
};

// Parses a number such as "1.5e3" or " nan ". Ignores surrounding spaces and tabs, like pandas. Returns nullopt if the
// text is not a number.
std::optional<double> real_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

// Returns the cell separator for a file name: ',', '\t', or '\0' for JSON objects. Returns nullopt if the name is not a
// table's name. Compressed tables have a second extension for the compression.
std::optional<char> separator_of(std::string_view path);
// Returns whether a file has the extension .json. Other JSON files may also have this extension, so the contents must
// be checked with begins_json_table().
bool has_json_name(std::string_view path);
// Returns whether `text`, the start of a file, begins JSON lines or an array of objects.
bool begins_json_table(std::string_view text);
std::optional<Compression> compression_of(std::string_view path);

// Parses a table in parts, so that its text need not fit into memory; only arrays of objects are parsed as a whole. The
// errors are those of parse_table().
class TableParser {
 public:
  explicit TableParser(char separator) : separator_(separator) {}
  Result<void> feed(std::string_view part);
  Result<Table> finish();  // call once, after the last part

 private:
  Result<void> start();
  Result<void> parse(bool is_end);
  Result<void> parse_array();
  Result<void> add_cells(const std::vector<Cell>& cells, std::uint64_t line);
  Result<void> add_object(const JsonObject& object, std::uint64_t line);

  const char separator_;
  std::string text_;  // that was not parsed yet
  std::uint64_t line_ = 1;
  bool has_started_ = false, is_array_ = false;
  Table table_;
  std::map<std::string, std::size_t, std::less<>> locations_;  // of the columns of objects
};

// Parses a table. The first row of separated values has the column names. JSON objects, in lines or in one array,
// contain the column names; if an object lacks a column, the cell is absent. Fails with kData and the line if a row has
// too many or too few cells, a name is duplicated, there are no rows, a quote is not closed, JSON is invalid, or the
// text is UTF-16. The table is sealed.
Result<Table> parse_table(std::string_view text, char separator);

}  // namespace feedline::format
