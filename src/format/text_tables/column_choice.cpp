// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/column_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "format/field_kind.h"
#include "format/sources/image_names.h"

namespace feedline::format {
namespace {

constexpr std::string_view kFileName = "file_name";
constexpr std::array<std::string_view, 4> kLabels{"label", "class", "category", "target"};
constexpr std::string_view kClassKind = "class";

struct Spec {
  std::string text, name, column;
  std::optional<FieldKind> said;
  bool are_classes = false;  // kind "class"
};

// Separates the kind from a spec. Column names may contain colons, so the text after the last colon is a kind only if
// there is no column with the whole name.
void take_kind_of(std::string_view& rest, const Table& table, Spec& spec) {
  const std::size_t colon = rest.rfind(':');
  if (colon == rest.npos || table.find(rest.substr(rest.find('=') + 1)) != nullptr) return;
  const std::string_view kind = rest.substr(colon + 1);
  spec.are_classes = kind == kClassKind;
  spec.said = spec.are_classes ? FieldKind::kInteger : field_kind_of(kind);
  if (spec.said) rest = rest.substr(0, colon);
}

Result<Spec> parse_spec(const std::string& text, const Table& table) {
  Spec spec{text, {}, {}, {}};
  std::string_view rest = text;
  take_kind_of(rest, table, spec);
  const std::size_t equals = rest.find('=');
  if (equals == 0) return config_error("fields: an empty name in '" + text + "'");
  spec.column = equals == rest.npos ? rest : rest.substr(equals + 1);
  spec.name = equals == rest.npos ? spec.column : std::string(rest.substr(0, equals));
  return spec;
}

std::string extension_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos || path.find('/', dot) != path.npos) return {};
  std::string extension(path.substr(dot + 1));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

// Returns the kind of the files named in the first cells, or nullopt if their extensions are unknown.
std::optional<FieldKind> files_of(const TableColumn& column, const std::string& name) {
  constexpr std::uint64_t kLookedAt = 8;
  std::optional<FieldKind> kind;
  std::uint64_t seen = 0;
  for (std::uint64_t row = 0; row < column.ends.size() && seen < kLookedAt; ++row) {
    if (column.absent[row]) continue;
    ++seen;
    const bool is_image = is_any_image_name(column.cell(row));
    const FieldKind one = usual_kind(name, is_image ? "png" : extension_of(column.cell(row)));
    if (one == FieldKind::kBytes || (kind && *kind != one)) return {};
    kind = one;
  }
  return kind;
}

bool is_of_files(std::string_view column) { return column == kFileName || column.ends_with("_file_name"); }

std::unexpected<Error> cannot_be(const Spec& spec, const std::string& why, const std::string& advice = "") {
  return config_error("fields: the column '" + spec.column + "' " + why + ", so the field '" + spec.name +
                      "' cannot be of kind " + std::string(name_of(*spec.said)) + advice);
}

// How to read a column of lists or objects.
std::string as_json(const Spec& spec) { return "; read it as JSON with '" + spec.name + "=" + spec.column + ":json'"; }

std::string shown(std::string_view cell) {
  constexpr std::size_t kMost = 80;  // maximum characters of a cell in a message
  return "'" + std::string(cell.substr(0, kMost)) + (cell.size() > kMost ? "...'" : "'");
}

std::unexpected<Error> wrong_cell(const Spec& spec, const Table& table, std::uint64_t row, const std::string& why) {
  Error error =
      data_error("line " + std::to_string(table.lines[row]) + " has " + shown(table.find(spec.column)->cell(row)) +
                     " in the column '" + spec.column + "', " + why,
                 "format")
          .error();
  error.where.record = row;
  return std::unexpected(std::move(error));
}

// Also accepts integers such as "7.0" and "7e2", if float64 represents them exactly.
std::optional<std::int64_t> exact_integer_in(std::string_view cell) {
  constexpr double kExact = 9007199254740992;  // 2^53: float64 represents all smaller integers
  if (const auto integer = integer_in(cell)) return integer;
  const auto real = real_in(cell);
  if (!real || std::abs(*real) >= kExact || *real != std::floor(*real)) return {};
  return static_cast<std::int64_t>(*real);
}

// Requires: column.are_numbers().
void take_integers(const TableColumn& column, ColumnField& field) {
  field.use = ColumnUse::kInteger;
  field.description.kind = FieldKind::kInteger;
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    const auto number = exact_integer_in(column.cell(row));
    field.numbers.push_back(number.value_or(0));
    if (!number) field.absent[row] = true;
  }
}

// Requires: column.are_numbers().
void take_reals(const TableColumn& column, ColumnField& field) {
  field.use = ColumnUse::kReal;
  field.description.kind = FieldKind::kArray;  // a scalar
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    const auto number = real_in(column.cell(row));
    field.reals.push_back(number.value_or(0));
    if (!number) field.absent[row] = true;
  }
}

// Converts the text cells of a column to class numbers, in sorted order.
void take_classes(const TableColumn& column, ColumnField& field) {
  field.use = ColumnUse::kClass;
  field.description.kind = FieldKind::kInteger;
  for (std::uint64_t row = 0; row < column.ends.size(); ++row)
    if (!column.absent[row]) field.classes.emplace_back(column.cell(row));
  std::ranges::sort(field.classes);
  field.classes.erase(std::ranges::unique(field.classes).begin(), field.classes.end());
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    const auto found = std::ranges::lower_bound(field.classes, column.cell(row), std::less<>());
    field.numbers.push_back(column.absent[row] ? 0 : found - field.classes.begin());
  }
}

// Uses text cells as class names. Fails if the column also has numbers, because only the user knows whether the texts
// are errors or the numbers are class names.
Result<void> take_texts_as_classes(const Spec& spec, const Table& table, const TableColumn& column,
                                   ColumnField& field) {
  if (!column.first_number || !column.first_other) return take_classes(column, field), Result<void>();
  const std::uint64_t row = *column.first_number;
  return wrong_cell(spec, table, *column.first_other,
                    "but line " + std::to_string(table.lines[row]) + " has the number " + shown(column.cell(row)) +
                        ": correct the table, or read the cells as class names with fields='" + spec.name + "=" +
                        spec.column + ":class', or as text with '" + spec.name + "=" + spec.column + ":text'");
}

void take_text(FieldKind kind, ColumnField& field) {
  field.use = ColumnUse::kText;
  field.description.kind = kind;
}

Result<void> take_usual(const Spec& spec, const Table& table, const TableColumn& column, ColumnField& field) {
  if (column.are_integers()) return take_integers(column, field), Result<void>();
  if (column.are_reals()) return take_reals(column, field), Result<void>();
  if (column.are_json()) return take_text(FieldKind::kJson, field), Result<void>();
  if (column.are_bytes) return take_text(FieldKind::kBytes, field), Result<void>();
  if (spec.name == kLabels.front() && !column.are_numbers()) return take_texts_as_classes(spec, table, column, field);
  return take_text(FieldKind::kText, field), Result<void>();
}

// Requires: column.are_numbers(). A number such as 1.5 is an error in the spec. NaN and integers out of range are
// errors in the cell.
Result<void> take_exact_integers(const Spec& spec, const Table& table, const TableColumn& column, ColumnField& field) {
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    const std::string_view cell = column.cell(row);
    const auto real = column.absent[row] ? std::nullopt : real_in(cell);
    if (!real || exact_integer_in(cell)) continue;
    if (!std::isfinite(*real) || *real == std::floor(*real))
      return wrong_cell(spec, table, row, "but the field '" + spec.name + "' needs 64-bit integers");
    return cannot_be(spec, "contains numbers that are not integers, such as " + shown(cell) + " in line " +
                               std::to_string(table.lines[row]));
  }
  return take_integers(column, field), Result<void>();
}

Result<void> take_said(const Spec& spec, const Table& table, const TableColumn& column, ColumnField& field) {
  const FieldKind kind = *spec.said;
  switch (kind) {
    case FieldKind::kInteger:
      if (column.are_bytes) return cannot_be(spec, "contains bytes");
      if (column.json > 0) return cannot_be(spec, "contains lists, objects, true or false", as_json(spec));
      if (spec.are_classes) return take_classes(column, field), Result<void>();
      if (column.are_numbers()) return take_exact_integers(spec, table, column, field);
      return take_texts_as_classes(spec, table, column, field);
    case FieldKind::kText:
    case FieldKind::kBytes:
    case FieldKind::kJson:
      return take_text(kind, field), Result<void>();
    case FieldKind::kArray:
      if (column.are_numbers()) return take_reals(column, field), Result<void>();
      break;
    case FieldKind::kBoxes:
    case FieldKind::kKeypoints:
      if (column.are_json()) return take_text(kind, field), Result<void>();
      break;
    default:
      break;
  }
  if (column.json > 0) return cannot_be(spec, "contains lists, objects, true or false", as_json(spec));
  if (column.are_numbers() || column.are_bytes) return cannot_be(spec, "names no files");
  field.use = ColumnUse::kFile;
  field.description.kind = kind;
  return {};
}

Result<ColumnField> choose(const Spec& spec, const Table& table) {
  const TableColumn* column = table.find(spec.column);
  if (column == nullptr)
    return config_error("fields: there is no column '" + spec.column + "'; the columns are " + table.names());
  ColumnField field;
  field.description.name = spec.name;
  field.column = static_cast<std::size_t>(column - table.columns.data());
  field.absent = column->absent;
  if (column->there == 0) return config_error("fields: the column '" + spec.column + "' is empty");
  if (spec.said) {
    FEEDLINE_CHECK_OK(take_said(spec, table, *column, field));
  } else if (const auto files = files_of(*column, spec.name); files || is_of_files(spec.column)) {
    field.use = ColumnUse::kFile;
    field.description.kind = files.value_or(FieldKind::kBytes);
  } else {
    FEEDLINE_CHECK_OK(take_usual(spec, table, *column, field));
  }
  return field;
}

// Returns "mask" for "mask_file_name", and "image" for "file_name".
std::string name_of_files(std::string_view column) {
  if (column == kFileName) return "image";
  return std::string(column.substr(0, column.size() - kFileName.size() - 1));
}

std::vector<Spec> specs_of_metadata(const Table& table) {
  std::vector<Spec> specs;
  for (const TableColumn& column : table.columns)
    if (is_of_files(column.name)) specs.push_back({column.name, name_of_files(column.name), column.name, {}});
  for (const TableColumn& column : table.columns)
    if (!is_of_files(column.name) && column.there > 0) specs.push_back({column.name, column.name, column.name, {}});
  return specs;
}

// Selects all columns that have values, for a table without images.
std::vector<Spec> specs_of_all(const Table& table) {
  std::vector<Spec> specs;
  for (const TableColumn& column : table.columns)
    if (column.there > 0) specs.push_back({column.name, column.name, column.name, {}});
  return specs;
}

std::vector<Spec> usual_specs(const Table& table) {
  std::vector<Spec> specs;
  for (const FieldKind kind : {FieldKind::kImage, FieldKind::kVideo})
    for (const TableColumn& column : table.columns)
      if (specs.empty() && files_of(column, "") == kind)
        specs.push_back({column.name, std::string(name_of(kind)), column.name, kind});
  if (specs.empty()) return specs_of_all(table);
  for (const std::string_view label : kLabels)
    if (specs.size() == 1 && table.find(label) != nullptr)
      specs.push_back({std::string(label), "label", std::string(label), FieldKind::kInteger});
  return specs;
}

}  // namespace

Result<std::vector<ColumnField>> choose_columns(const std::vector<std::string>& texts, const Table& table,
                                                bool is_metadata) {
  std::vector<Spec> specs;
  for (const std::string& text : texts) {
    FEEDLINE_TRY(specs.emplace_back(), parse_spec(text, table));
  }
  if (specs.empty() && is_metadata) specs = specs_of_metadata(table);
  if (specs.empty()) specs = usual_specs(table);
  if (specs.empty()) return config_error("no column of the table has a value; the columns are: " + table.names());
  std::vector<ColumnField> fields;
  for (const Spec& spec : specs) {
    for (const ColumnField& other : fields)
      if (other.description.name == spec.name)
        return config_error("fields: two fields are called '" + spec.name + "'; put NAME= before one of them");
    FEEDLINE_TRY(fields.emplace_back(), choose(spec, table));
  }
  return fields;
}

std::vector<UnopenedColumn> unopened_columns(const std::vector<ColumnField>& fields, bool are_default,
                                             const Table& table) {
  std::vector<UnopenedColumn> left;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const TableColumn& column = table.columns[i];
    if (std::ranges::count(fields, i, &ColumnField::column) > 0) continue;
    UnopenedColumn& one = left.emplace_back(column.name, "nothing", "no row has a value", "");
    if (column.there == 0) continue;
    const auto files = files_of(column, column.name);
    const FieldKind kind = files                   ? *files
                           : column.are_integers() ? FieldKind::kInteger
                           : column.are_reals()    ? FieldKind::kArray
                           : column.are_json()     ? FieldKind::kJson
                           : column.are_bytes      ? FieldKind::kBytes
                                                   : FieldKind::kText;
    one.holds = files                   ? "files"
                : column.are_integers() ? "integers"
                : column.are_reals()    ? "numbers"
                : column.are_json()     ? "JSON"
                : column.are_bytes      ? "bytes"
                                        : "text";
    one.reason = are_default ? "not a default field" : "not in fields=";
    one.spec = column.name + ":" + std::string(name_of(kind));
  }
  left.insert(left.end(), table.unread.begin(), table.unread.end());
  return left;
}

std::vector<FieldRemark> remarks_of(const std::vector<ColumnField>& fields, const Table& table) {
  std::vector<FieldRemark> remarks;
  for (const ColumnField& field : fields) {
    const TableColumn& column = table.columns[field.column];
    if (!column.type.empty()) remarks.push_back({field.description.name, column.unit, column.type});
  }
  return remarks;
}

}  // namespace feedline::format
