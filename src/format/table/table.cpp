// SPDX-License-Identifier: Apache-2.0
#include "format/table/table.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

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

Result<Table> parse_separated(TextRows rows) {
  auto head = rows.next_cells();
  if (!head) return wrong(rows.line(), head.error());
  if (!*head) return data_error("the table is empty: a first line with the columns' names was expected", "format");
  Table table;
  for (const Cell& cell : **head) {
    if (table.find(cell.text) != nullptr) return wrong(rows.line(), "names the column '" + cell.text + "' twice");
    table.columns.push_back({.name = cell.text});
  }
  while (true) {
    const auto row = rows.next_cells();
    if (!row) return wrong(rows.line(), row.error());
    if (!*row) return table;
    const std::vector<Cell>& cells = **row;
    if (cells.size() != table.columns.size())
      return wrong(rows.line(), "has " + std::to_string(cells.size()) + " cells, and the first line names " +
                                    std::to_string(table.columns.size()) + " columns");
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].add(cells[i]);
    table.lines.push_back(rows.line());
  }
}

Result<Table> parse_objects(TextRows rows) {
  Table table;
  std::map<std::string, std::size_t, std::less<>> places;
  while (true) {
    const auto object = rows.next_object();
    if (!object) return wrong(rows.line(), object.error());
    if (!*object) break;
    for (const auto& [name, cell] : **object) {
      const auto [found, is_first] = places.emplace(name, table.columns.size());
      if (is_first) {
        table.columns.push_back({.name = name});
        for (std::uint64_t i = 0; i < table.rows(); ++i) table.columns.back().add({});
      }
      TableColumn& column = table.columns[found->second];
      if (column.ends.size() > table.rows()) return wrong(rows.line(), "has '" + name + "' twice");
      column.add(cell);
    }
    table.lines.push_back(rows.line());
    for (TableColumn& column : table.columns)
      if (column.ends.size() < table.rows()) column.add({});
  }
  return table;
}

}  // namespace

std::optional<std::int64_t> integer_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<double> real_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

void TableColumn::add(const Cell& cell) {
  text += cell.text;
  ends.push_back(text.size());
  absent.push_back(cell.kind == CellKind::kAbsent);
  if (cell.kind == CellKind::kAbsent) return;
  ++there;
  json += cell.kind == CellKind::kJson;
  if (cell.kind != CellKind::kPlain) return;
  integers += integer_in(cell.text).has_value();
  reals += real_in(cell.text).has_value();
}

void TableColumn::append(const TableColumn& other) {
  const std::uint64_t begin = text.size();
  text += other.text;
  for (const std::uint64_t end : other.ends) ends.push_back(begin + end);
  absent.insert(absent.end(), other.absent.begin(), other.absent.end());
  there += other.there;
  integers += other.integers;
  reals += other.reals;
  json += other.json;
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
  columns.push_back(std::move(column));
}

void Table::append(Table other) {
  for (const TableColumn& column : other.columns)
    if (find(column.name) == nullptr) add_constant(column.name, {});
  for (const TableColumn& column : columns)
    if (other.find(column.name) == nullptr) other.add_constant(column.name, {});
  for (TableColumn& column : columns) column.append(*other.find(column.name));
  lines.insert(lines.end(), other.lines.begin(), other.lines.end());
  for (UnopenedColumn& column : other.unread)
    if (std::ranges::find(unread, column.name, &UnopenedColumn::name) == unread.end())
      unread.push_back(std::move(column));
  std::erase_if(unread, [&](const UnopenedColumn& column) { return find(column.name) != nullptr; });
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
  std::string name = lower(path.substr(0, path.find('?')));
  for (const auto& [end, kind] : kCompressions)
    if (name.ends_with(end)) {
      name.resize(name.size() - end.size());
      break;
    }
  if (name.ends_with(".csv")) return ',';
  if (name.ends_with(".tsv")) return '\t';
  if (name.ends_with(".jsonl") || name.ends_with(".ndjson")) return '\0';
  return {};
}

Result<Table> parse_table(std::string_view text, char separator) {
  FEEDLINE_TRY(Table table, separator == '\0' ? parse_objects({text, separator}) : parse_separated({text, separator}));
  if (table.rows() == 0) return data_error("the table has no rows", "format");
  return table;
}

}  // namespace feedline::format
