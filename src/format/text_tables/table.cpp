// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "format/text_tables/json_object.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

constexpr std::pair<std::string_view, Compression> kCompressions[] = {
    {".gz", Compression::kGzip}, {".zst", Compression::kZstd}, {".bz2", Compression::kBzip2}};

std::unexpected<Error> wrong(std::uint64_t line, const std::string& what) {
  return data_error("line " + std::to_string(line) + " " + what, "format");
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

// Returns whether a text marks a missing value in a column of numbers, as in pandas' read_csv. NaN is not included,
// since it is a valid float64.
bool is_missing_name(std::string_view text) {
  static constexpr std::string_view kNames[] = {"",     "NA",      "N/A",    "n/a",      "<NA>",
                                                "#N/A", "#NA",     "NULL",   "null",     "#N/A N/A",
                                                "None", "-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN"};
  return std::ranges::find(kNames, without_blanks(text)) != std::end(kNames);
}

bool are_digits(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  text = without_blanks(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::string without_compression(std::string_view path) {
  std::string name = lower(path.substr(0, path.find('?')));
  for (const auto& [end, kind] : kCompressions)
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return name;
}

// Detects UTF-16 by its byte-order mark, or by the zero byte in an ASCII character.
bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") || text.substr(0, 2).contains('\0');
}

}  // namespace

std::optional<std::int64_t> integer_in(std::string_view text) { return number_in<std::int64_t>(text); }

std::optional<double> real_in(std::string_view text) { return number_in<double>(text); }

void TableColumn::add(const Cell& cell) {
  const std::uint64_t row = ends.size();
  text.append(cell.text);
  ends.push_back(text.size());
  absent.push_back(cell.kind == CellKind::kAbsent);
  if (cell.kind == CellKind::kAbsent) return;
  ++there;
  json += cell.kind == CellKind::kJson;
  const auto real = cell.kind == CellKind::kPlain ? real_in(cell.text) : std::nullopt;
  if (real) {
    const bool is_integer = integer_in(cell.text).has_value();
    ++reals;
    integers += is_integer;
    too_large += !is_integer && are_digits(without_blanks(cell.text));
    if (!first_number && std::isfinite(*real)) first_number = row;
  } else if (cell.kind == CellKind::kPlain && is_missing_name(cell.text)) {
    ++missing;
  } else if (!first_other) {
    first_other = row;
  }
}

void TableColumn::append(const TableColumn& other) {
  const std::uint64_t begin = text.size(), rows = ends.size();
  text.append(other.text.values());
  for (const std::uint64_t end : other.ends.values()) ends.push_back(begin + end);
  absent.insert(absent.end(), other.absent.begin(), other.absent.end());
  there += other.there;
  integers += other.integers;
  reals += other.reals;
  json += other.json;
  missing += other.missing;
  too_large += other.too_large;
  if (!first_number && other.first_number) first_number = rows + *other.first_number;
  if (!first_other && other.first_other) first_other = rows + *other.first_other;
  are_bytes = are_bytes || other.are_bytes;
  if (type.empty()) unit = other.unit, type = other.type;
}

const TableColumn* Table::find(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &TableColumn::name);
  return found == columns.end() ? nullptr : &*found;
}

void Table::add_constant(std::string name, const Cell& cell) {
  TableColumn column;
  column.name = std::move(name);
  for (std::uint64_t row = 0; row < rows(); ++row) column.add(cell);
  column.text.seal();
  column.ends.seal();
  columns.push_back(std::move(column));
}

void Table::append(Table other) {
  for (const TableColumn& column : other.columns)
    if (find(column.name) == nullptr) add_constant(column.name, {});
  for (const TableColumn& column : columns)
    if (other.find(column.name) == nullptr) other.add_constant(column.name, {});
  for (TableColumn& column : columns) column.append(*other.find(column.name));
  lines.append(other.lines.values());
  for (UnopenedColumn& column : other.unread)
    if (std::ranges::find(unread, column.name, &UnopenedColumn::name) == unread.end())
      unread.push_back(std::move(column));
  std::erase_if(unread, [&](const UnopenedColumn& column) { return find(column.name) != nullptr; });
}

void Table::seal() {
  lines.seal();
  for (TableColumn& column : columns) {
    column.text.seal();
    column.ends.seal();
  }
}

std::string Table::names() const {
  std::string names;
  for (const TableColumn& column : columns) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

std::optional<Compression> compression_of(std::string_view path) {
  const std::string name = lower(path.substr(0, path.find('?')));
  for (const auto& [end, kind] : kCompressions)
    if (name.ends_with(end)) return kind;
  return {};
}

std::optional<char> separator_of(std::string_view path) {
  const std::string name = without_compression(path);
  if (name.ends_with(".csv")) return ',';
  if (name.ends_with(".tsv")) return '\t';
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json")) return '\0';
  return {};
}

bool has_json_name(std::string_view path) { return without_compression(path).ends_with(".json"); }

bool begins_json_table(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\xef\xbb\xbf";  // and a byte-order mark
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return false;
  if (text[first] == '[') {
    const std::size_t next = text.find_first_not_of(kSpace, first + 1);
    return next != text.npos && text[next] == '{';
  }
  if (text[first] != '{') return false;
  // A line break between two objects means JSON lines. Such a line break cannot occur inside a JSON value, because
  // strings contain no line breaks and objects are separated by commas.
  for (std::size_t end = text.find('\n', first); end != text.npos; end = text.find('\n', end + 1)) {
    const std::size_t next = text.find_first_not_of(kSpace, end);
    const std::size_t last = text.find_last_not_of(kSpace, end);
    if (next != text.npos && text[next] == '{' && text[last] == '}') return true;
  }
  return false;
}

Result<void> TableParser::add_cells(const std::vector<Cell>& cells, std::uint64_t line) {
  if (table_.columns.empty()) {
    for (const Cell& cell : cells) {
      if (table_.find(cell.text) != nullptr) return wrong(line, "names the column '" + cell.text + "' twice");
      table_.columns.push_back({.name = cell.text});
    }
    return {};
  }
  if (cells.size() != table_.columns.size())
    return wrong(line, "has " + std::to_string(cells.size()) + " cells, but the first line names " +
                           std::to_string(table_.columns.size()) + " columns");
  for (std::size_t i = 0; i < cells.size(); ++i) table_.columns[i].add(cells[i]);
  table_.lines.push_back(line);
  return {};
}

Result<void> TableParser::add_object(const JsonObject& object, std::uint64_t line) {
  for (const auto& [name, cell] : object) {
    const auto [found, is_first] = locations_.emplace(name, table_.columns.size());
    if (is_first) {
      table_.columns.push_back({.name = name});
      for (std::uint64_t i = 0; i < table_.rows(); ++i) table_.columns.back().add({});
    }
    TableColumn& column = table_.columns[found->second];
    if (column.ends.size() > table_.rows()) return wrong(line, "has '" + name + "' twice");
    column.add(cell);
  }
  table_.lines.push_back(line);
  for (TableColumn& column : table_.columns)
    if (column.ends.size() < table_.rows()) column.add({});
  return {};
}

// Reads the kind of the table from the first characters.
Result<void> TableParser::start() {
  if (is_utf16(text_))
    return data_error(
        "the table is not UTF-8 but UTF-16 (or UTF-32): convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8",
        "format");
  const std::size_t first = text_.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  has_started_ = first != text_.npos;
  is_array_ = has_started_ && separator_ == '\0' && text_[first] == '[';
  return {};
}

// Parses the rows that are complete: rows that end before the text does, and all rows at the end of the table.
Result<void> TableParser::parse(bool is_end) {
  TextRows rows(text_, separator_, line_);
  TextRows::Position parsed{0, line_};
  while (true) {
    if (separator_ == '\0') {
      const auto object = rows.next_object();
      if (!is_end && rows.at_end()) break;
      if (!object) return wrong(rows.line(), object.error());
      if (!*object) break;
      FEEDLINE_CHECK_OK(add_object(**object, rows.line()));
    } else {
      const auto cells = rows.next_cells();
      if (!is_end && rows.at_end()) break;
      if (!cells) return wrong(rows.line(), cells.error());
      if (!*cells) break;
      FEEDLINE_CHECK_OK(add_cells(**cells, rows.line()));
    }
    parsed = rows.position();
  }
  text_.erase(0, parsed.offset);
  line_ = parsed.line;
  return {};
}

Result<void> TableParser::feed(std::string_view part) {
  constexpr std::size_t kStart = 64;  // enough to recognise the kind
  text_ += part;
  if (!has_started_ && text_.size() < kStart) return {};
  if (!has_started_) FEEDLINE_CHECK_OK(start());
  return is_array_ || !has_started_ ? Result<void>() : parse(false);
}

Result<Table> TableParser::finish() {
  if (!has_started_) FEEDLINE_CHECK_OK(start());
  if (is_array_) {
    FEEDLINE_CHECK_OK(parse_array());
  } else {
    FEEDLINE_CHECK_OK(parse(true));
  }
  if (separator_ != '\0' && table_.columns.empty())
    return data_error("the table is empty: the first line must contain the column names", "format");
  if (table_.rows() == 0) return data_error("the table has no rows", "format");
  table_.seal();
  return std::move(table_);
}

// Parses the objects of an array: "[{...}, {...}]".
Result<void> TableParser::parse_array() {
  const std::string_view text = text_;
  text::JsonReader reader(text);
  std::uint64_t line = 1;
  std::size_t counted = 0;
  const auto line_at = [&](std::size_t offset) {
    line += static_cast<std::uint64_t>(std::ranges::count(text.substr(counted, offset - counted), '\n'));
    counted = offset;
    return line;
  };
  Result<void> added;
  const bool is_whole = reader.array([&] {
    const auto element = reader.raw();
    if (!element) return false;
    const std::uint64_t at = line_at(static_cast<std::size_t>(element->data() - text.data()));
    const auto object = parse_json_object(*element);
    added = object ? add_object(*object, at) : wrong(at, object.error());
    return added.has_value();
  });
  FEEDLINE_CHECK_OK(added);
  if (!is_whole || !reader.finish())
    return wrong(line_at(static_cast<std::size_t>(reader.offset())),
                 "is not valid JSON in an array of objects: " + reader.problem());
  return {};
}

Result<Table> parse_table(std::string_view text, char separator) {
  TableParser parser(separator);
  FEEDLINE_CHECK_OK(parser.feed(text));
  return parser.finish();
}

}  // namespace feedline::format
