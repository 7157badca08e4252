// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/text_rows.h"

#include <algorithm>

#include "format/text_tables/json_object.h"
#include "text/utf8.h"

namespace feedline::format {

TextRows::TextRows(std::string_view text, char separator, std::uint64_t line)
    : text_(text), separator_(separator), line_(line), row_line_(line) {
  if (line == 1 && text_.starts_with(text::kByteOrderMark)) at_ = text::kByteOrderMark.size();
}

bool TextRows::skip_line_end() {
  if (text_.substr(at_).starts_with("\r\n"))
    at_ += 2;
  else if (!at_end() && (text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
  else
    return false;
  ++line_;
  return true;
}

void TextRows::skip_empty_lines() {
  while (skip_line_end()) {
  }
  row_line_ = line_;
}

// Reads a quoted cell from its opening quote to its closing quote.
std::expected<Cell, std::string> TextRows::quoted_cell() {
  Cell cell{CellKind::kPlain, {}};
  for (++at_; !at_end(); ++at_) {
    const char c = text_[at_];
    if (c == '\n' || (c == '\r' && !text_.substr(at_ + 1).starts_with('\n'))) ++line_;
    if (c != '"') {
      cell.text += c;
      continue;
    }
    if (text_.substr(at_ + 1).starts_with('"')) {
      cell.text += c;
      ++at_;
      continue;
    }
    ++at_;
    const std::string_view rest = text_.substr(at_);
    if (rest.empty() || rest.front() == separator_ || rest.front() == '\n' || rest.front() == '\r') {
      if (cell.text.empty()) cell.kind = CellKind::kAbsent;  // as in pandas and `datasets`, quoted or not
      return cell;
    }
    return std::unexpected("has text after a quoted cell");
  }
  return std::unexpected("has a quote without an end");
}

Cell TextRows::plain_cell() {
  const std::size_t begin = at_;
  while (!at_end() && text_[at_] != separator_ && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
  if (at_ == begin) return {};
  return {CellKind::kPlain, std::string(text_.substr(begin, at_ - begin))};
}

std::expected<std::optional<std::vector<Cell>>, std::string> TextRows::next_cells() {
  skip_empty_lines();
  if (at_end()) return std::nullopt;
  std::vector<Cell> cells;
  while (true) {
    if (!at_end() && text_[at_] == '"') {
      auto cell = quoted_cell();
      if (!cell) return std::unexpected(std::move(cell).error());
      cells.push_back(std::move(*cell));
    } else {
      cells.push_back(plain_cell());
    }
    if (at_end() || skip_line_end()) return cells;
    ++at_;  // the separator
  }
}

std::expected<std::optional<JsonObject>, std::string> TextRows::next_object() {
  skip_empty_lines();
  if (at_end()) return std::nullopt;
  const std::size_t end = std::min(text_.find('\n', at_), text_.size());
  std::string_view line = text_.substr(at_, end - at_);
  at_ = end;
  if (line.ends_with('\r')) line.remove_suffix(1);
  auto object = parse_json_object(line);
  if (!object) return std::unexpected(std::move(object).error());
  return std::move(*object);
}

}  // namespace feedline::format
