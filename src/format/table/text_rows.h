// SPDX-License-Identifier: Apache-2.0
#pragma once

// Splits text into rows: comma- or tab-separated values (RFC 4180), or one JSON object per line.

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {

// The type of a cell, which its text does not always show. In separated values, cells are kPlain, quoted or not, as in
// pandas, or kAbsent if empty.
enum class CellKind : std::uint8_t {
  kPlain,   // a number or text
  kText,    // text, even if it looks like a number
  kJson,    // a list, an object, true or false
  kAbsent,  // no value
};

struct Cell {
  CellKind kind = CellKind::kAbsent;
  std::string text;
};

// The members of an object, in their order in the text.
using JsonObject = std::vector<std::pair<std::string, Cell>>;

// Splits a text into rows; the text must outlive this object. A UTF-8 byte-order mark is skipped. Lines end with LF or
// CRLF; separated values may also use CR. Empty lines are skipped.
class TextRows {
 public:
  // separator: ',' or '\t', or '\0' for JSON objects.
  TextRows(std::string_view text, char separator);

  // The line number of the last returned row.
  std::uint64_t line() const { return row_line_; }
  // Returns the next row of separated values; nullopt at the end. Errors are written to complete a sentence about
  // line().
  std::expected<std::optional<std::vector<Cell>>, std::string> next_cells();
  // Returns the names and values of the next object, in their order in the text.
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
