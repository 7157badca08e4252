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

// The type of a cell, which cannot always be derived from its text. In separated values, cells are kPlain, or kAbsent
// if they are empty. Quotes do not affect the type, as in pandas.
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

// The members of an object, in the order of the text.
using JsonObject = std::vector<std::pair<std::string, Cell>>;

// Splits a text, which must outlive this object, into rows. Skips a UTF-8 byte-order mark and empty lines. Lines end
// with LF or CRLF; in separated values, they may also end with CR.
class TextRows {
 public:
  // A position at the start of a row.
  struct Position {
    std::size_t offset = 0;
    std::uint64_t line = 1;
  };
  // `separator` is ',' or '\t', or '\0' for JSON objects. `line` is the number of the first line.
  TextRows(std::string_view text, char separator, std::uint64_t line = 1);

  // Returns the line number of the last returned row.
  std::uint64_t line() const { return row_line_; }
  Position position() const { return {at_, line_}; }
  // Returns whether all of the text was read. The last returned row may then be incomplete, if more text follows.
  bool at_end() const { return at_ >= text_.size(); }
  // Returns the next row of separated values, or nullopt at the end. Error messages complete a sentence about line().
  std::expected<std::optional<std::vector<Cell>>, std::string> next_cells();
  // Returns the names and values of the next object, in the order of the text.
  std::expected<std::optional<JsonObject>, std::string> next_object();

 private:
  bool skip_line_end();
  void skip_empty_lines();
  std::expected<Cell, std::string> quoted_cell();
  Cell plain_cell();

  const std::string_view text_;
  const char separator_;
  std::size_t at_ = 0;
  std::uint64_t line_, row_line_;
};

}  // namespace feedline::format
