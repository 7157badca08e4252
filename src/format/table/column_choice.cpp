// SPDX-License-Identifier: Apache-2.0
#include "format/table/column_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "format/field_kind.h"
#include "format/folder/folder_listing.h"

namespace feedline::format {
namespace {

constexpr std::string_view kFileName = "file_name";
constexpr std::array<std::string_view, 4> kLabels{"label", "class", "category", "target"};

struct Spec {
  std::string text, name, column;
  std::optional<FieldKind> said;
};

Result<Spec> parse_spec(const std::string& text) {
  Spec spec{text, {}, {}, {}};
  std::string_view rest = text;
  // a column's name may have a colon: only a kind behind the last one is one
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos && field_kind_of(std::string_view(text).substr(colon + 1))) {
    FEEDLINE_TRY(spec.said, take_kind(rest));
  }
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

// What the files are that the first cells name; nullopt: they name none that is known.
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

std::unexpected<Error> cannot_be(const Spec& spec, const std::string& why) {
  return config_error("fields: the column '" + spec.column + "' " + why + ", so the field '" + spec.name +
                      "' cannot be of kind " + std::string(name_of(*spec.said)));
}

void take_integers(const TableColumn& column, ColumnField& field) {
  field.use = ColumnUse::kInteger;
  field.description.kind = FieldKind::kInteger;
  for (std::uint64_t row = 0; row < column.ends.size(); ++row)
    field.numbers.push_back(integer_in(column.cell(row)).value_or(0));
}

void take_reals(const TableColumn& column, ColumnField& field) {
  field.use = ColumnUse::kReal;
  field.description.kind = FieldKind::kArray;  // without a dimension
  for (std::uint64_t row = 0; row < column.ends.size(); ++row)
    field.reals.push_back(real_in(column.cell(row)).value_or(0));
}

// Numbers for the texts of a column, in their order.
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

void take_text(FieldKind kind, ColumnField& field) {
  field.use = ColumnUse::kText;
  field.description.kind = kind;
}

void take_usual(const TableColumn& column, ColumnField& field) {
  const std::string& name = field.description.name;
  if (column.are_integers()) return take_integers(column, field);
  if (column.are_reals()) return take_reals(column, field);
  if (column.are_json()) return take_text(FieldKind::kJson, field);
  if (column.are_bytes) return take_text(FieldKind::kBytes, field);
  if (name == kLabels.front()) return take_classes(column, field);
  take_text(FieldKind::kText, field);
}

// NaN among integers is an error of its row, while 1.5 is a wrong spec.
Result<void> check_finite(const Spec& spec, const Table& table, const TableColumn& column) {
  if (!column.are_reals()) return {};
  for (std::uint64_t row = 0; row < column.ends.size(); ++row) {
    const std::string_view cell = column.cell(row);
    if (column.absent[row] || integer_in(cell)) continue;
    if (std::isfinite(real_in(cell).value_or(0))) return {};
    return data_error("line " + std::to_string(table.lines[row]) + " has '" + std::string(cell) + "' in the column '" +
                          spec.column + "', but the field '" + spec.name + "' needs integers",
                      "format");
  }
  return {};
}

Result<void> take_said(const Spec& spec, const Table& table, const TableColumn& column, ColumnField& field) {
  const FieldKind kind = *spec.said;
  switch (kind) {
    case FieldKind::kInteger:
      if (column.are_integers()) return take_integers(column, field), Result<void>();
      FEEDLINE_CHECK_OK(check_finite(spec, table, column));
      if (column.are_reals() || column.json > 0)
        return cannot_be(spec, "holds numbers that are not integers, or lists");
      return take_classes(column, field), Result<void>();
    case FieldKind::kText:
    case FieldKind::kBytes:
    case FieldKind::kJson:
      return take_text(kind, field), Result<void>();
    case FieldKind::kArray:
      if (column.are_reals()) return take_reals(column, field), Result<void>();
      break;
    case FieldKind::kBoxes:
    case FieldKind::kKeypoints:
      if (column.are_json()) return take_text(kind, field), Result<void>();
      break;
    default:
      break;
  }
  if (column.are_reals() || column.json > 0 || column.are_bytes) return cannot_be(spec, "names no files");
  field.use = ColumnUse::kFile;
  field.description.kind = kind;
  return {};
}

Result<ColumnField> choose(const Spec& spec, const Table& table) {
  const TableColumn* column = table.find(spec.column);
  if (column == nullptr)
    return config_error("fields: there is no column '" + spec.column + "'; there are " + table.names());
  ColumnField field;
  field.description.name = spec.name;
  field.column = static_cast<std::size_t>(column - table.columns.data());
  if (column->there == 0) return config_error("fields: the column '" + spec.column + "' is empty");
  if (spec.said) {
    FEEDLINE_CHECK_OK(take_said(spec, table, *column, field));
  } else if (const auto files = files_of(*column, spec.name); files || is_of_files(spec.column)) {
    field.use = ColumnUse::kFile;
    field.description.kind = files.value_or(FieldKind::kBytes);
  } else {
    take_usual(*column, field);
  }
  return field;
}

// "mask" of "mask_file_name"; the image of "file_name".
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

// For a table without images: every column with a value.
std::vector<Spec> specs_of_all(const Table& table) {
  std::vector<Spec> specs;
  for (const TableColumn& column : table.columns)
    if (column.there > 0) specs.push_back({column.name, column.name, column.name, {}});
  return specs;
}

std::vector<Spec> usual_specs(const Table& table) {
  std::vector<Spec> specs;
  for (const TableColumn& column : table.columns)
    if (files_of(column, "") == FieldKind::kImage && specs.empty())
      specs.push_back({column.name, "image", column.name, FieldKind::kImage});
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
    FEEDLINE_TRY(specs.emplace_back(), parse_spec(text));
  }
  if (specs.empty() && is_metadata) specs = specs_of_metadata(table);
  if (specs.empty()) specs = usual_specs(table);
  if (specs.empty()) return config_error("the table has no column with a value; its columns are: " + table.names());
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
