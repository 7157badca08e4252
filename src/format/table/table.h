// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/dataset.h"
#include "feedline/error.h"
#include "format/compression/compression.h"
#include "format/table/text_rows.h"

namespace feedline::format {

// One column, its cells one behind the other.
struct TableColumn {
  std::string name;
  std::string text;                 // of all cells
  std::vector<std::uint64_t> ends;  // of each cell, in text
  std::vector<bool> absent;
  // How many cells have a value, and how many of these are integers of 64 bits, numbers, JSON, names of missing values
  // ("NA"), and integers of more than 64 bits.
  std::uint64_t there = 0, integers = 0, reals = 0, json = 0, missing = 0, too_large = 0;
  // The first rows with a finite number, and with a cell that is neither a number nor the name of a missing value.
  std::optional<std::uint64_t> first_number = {}, first_other = {};
  bool are_bytes = false;            // they are no text
  std::string unit = {}, type = {};  // of a column whose type means more than its values: "us", "int64, timestamp[us]"

  std::string_view cell(std::uint64_t row) const {
    const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::string_view(text).substr(begin, ends[row] - begin);
  }
  bool are_integers() const { return integers > 0 && integers + missing == there; }
  bool are_numbers() const { return reals > 0 && reals + missing == there; }
  // Float64 would round integers of more than 64 bits.
  bool are_reals() const { return are_numbers() && too_large == 0; }
  // Lists, objects, true and false; numbers may be among them.
  bool are_json() const { return json > 0 && json + reals == there; }
  void add(const Cell& cell);
  void append(const TableColumn& other);
};

// A table in memory.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::uint64_t> lines;         // where each row begins, for messages
  std::vector<UnopenedColumn> unread = {};  // columns that are not among these, and why

  std::uint64_t rows() const { return lines.size(); }
  const TableColumn* find(std::string_view name) const;
  std::string names() const;
  // A column with the same cell in each row.
  void add_constant(std::string name, const Cell& cell);
  // Rows of another table. Columns that only one of them has, or could be read of, are absent in the rows of the other.
  void append(Table other);
};

// "1.5e3", " nan ": spaces and tabs around a number are ignored, as pandas does. nullopt: not a number.
std::optional<double> real_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

// What separates the cells of a file of this name: ',', '\t', or '\0' for JSON objects; nullopt: its name is not that
// of a table. A compressed table has the end of its compression after its own.
std::optional<char> separator_of(std::string_view path);
// Names of other JSON files end in .json, too: the content decides (begins_json_table()).
bool has_json_name(std::string_view path);
// Does a file begin like JSON lines, or like one array of objects? Of `text`, the start of the file.
bool begins_json_table(std::string_view text);
std::optional<Compression> compression_of(std::string_view path);

// The first row of separated values names the columns. JSON objects, in lines or in one array, name them themselves,
// and a column that an object lacks is absent there. kData: a row with more or fewer cells, a name twice, no row, a
// quote without end, invalid JSON, UTF-16; the line is named.
Result<Table> parse_table(std::string_view text, char separator);

}  // namespace feedline::format
