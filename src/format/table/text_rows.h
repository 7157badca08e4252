// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows out of text: comma- or tab-separated values by RFC 4180, or an object of JSON in each line.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {

// What a cell's text does not show. Cells of separated values are kPlain, quoted or not, as in pandas, or kAbsent if
// empty.
enum class CellKind : std::uint8_t {
  kPlain,   // a number, or text
  kText,    // text, though it may look like a number
  kJson,    // a list or an object, or true or false
  kAbsent,  // nothing
};

struct Cell {
  CellKind kind = CellKind::kAbsent;
  std::string text;
};

// The members of an object, in its order.
using JsonObject = std::vector<std::pair<std::string, Cell>>;

// Splits a text into rows; the text outlives it. A byte-order mark (UTF-8's) is skipped; lines end with LF or CRLF, of
// separated values also with CR; empty lines are skipped.
class TextRows {
 public:
  // separator: ',' or '\t'; '\0': objects of JSON.
  TextRows(std::string_view text, char separator);

  // Where the row given last begins.
  std::uint64_t line() const { return row_line_; }
  // The next row of separated values; nullopt: there is none. An error is the end of a sentence about line().
  std::expected<std::optional<std::vector<Cell>>, std::string> next_cells();
  // The next object: its names and values, in its order.
  std::expected<std::optional<JsonObject>, std::string> next_object();

 private:
  bool at_end() const { return at_ >= text_.size(); }
  bool skip_line_end();
  void skip_empty_lines();
  std::expected<Cell, std::string> quoted_cell();
  Cell plain_cell();

  const std::string_view text_;
  const char separator_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1, row_line_ = 1;
};

}  // namespace feedline::format
