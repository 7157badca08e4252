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
  // Lists, objects, true or false, possibly mixed with numbers.
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
  // Adds the rows of another table. Columns that only one table has are absent in the other's rows.
  void append(Table other);
};

// "1.5e3", "nan"; nullopt: no number.
std::optional<double> real_in(std::string_view text);
std::optional<std::int64_t> integer_in(std::string_view text);

// The separator of cells in a file of this name: ',', '\t', or '\0' for lines of JSON objects; nullopt: not the name of
// a table. The name of a compressed table also has the extension of the compression.
std::optional<char> separator_of(std::string_view path);
std::optional<Compression> compression_of(std::string_view path);

// The first row of separated values names the columns; objects of JSON name them themselves, and what one lacks is
// absent. kData: a row with more or fewer cells, a name twice, no row, a quote without end, no JSON; the line is named.
Result<Table> parse_table(std::string_view text, char separator);

}  // namespace feedline::format
