// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  // How many cells are there, and of these how many are numbers and JSON by what stands in them.
  std::uint64_t there = 0, integers = 0, reals = 0, json = 0;

  std::string_view cell(std::uint64_t row) const {
    const std::uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return std::string_view(text).substr(begin, ends[row] - begin);
  }
  bool are_integers() const { return there > 0 && integers == there; }
  bool are_reals() const { return there > 0 && reals == there; }
  // Lists, objects, true and false; numbers may be among them.
  bool are_json() const { return json > 0 && json + reals == there; }
  void add(const Cell& cell);
  void append(const TableColumn& other);
};

// A table in memory.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::uint64_t> lines;  // where each row begins, for messages

  std::uint64_t rows() const { return lines.size(); }
  const TableColumn* find(std::string_view name) const;
  std::string names() const;
  // A column with the same cell in each row.
  void add_constant(std::string name, const Cell& cell);
  // Rows of another table. Columns that only one of them has are absent in the rows of the other.
  void append(Table other);
};

// "1.5e3", "nan"; nullopt: no number.
std::optional<double> real_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

// What separates the cells of a file of this name: ',', '\t', or '\0' for objects of JSON in lines; nullopt: its name
// is not that of a table. A compressed table has the end of its compression after its own.
std::optional<char> separator_of(std::string_view path);
std::optional<Compression> compression_of(std::string_view path);

// The first row of separated values names the columns; objects of JSON name them themselves, and what one lacks is
// absent. kData: a row with more or fewer cells, a name twice, no row, a quote without end, no JSON; the line is named.
Result<Table> parse_table(std::string_view text, char separator);

}  // namespace feedline::format
