// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/column_choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "format/field_kind.h"
#include "format/label_names.h"
#include "format/sources/image_names.h"
#include "format/wanted_field.h"

namespace feedline::format {
namespace {

// Returns common names of image columns, which must contain bytes.
const std::vector<std::string_view>& usual_image_names() {
  static const std::vector<std::string_view> names = image_column_names({"image", "img"}, {"image_bytes"});
  return names;
}

bool is_single(const ColumnType& column) { return column.holds == Holds::kNumbers && column.lists.dims() == 0; }

bool is_integer(const ColumnType& column) {
  return is_single(column) && column.dtype != DType::kFloat16 && column.dtype != DType::kFloat32 &&
         column.dtype != DType::kFloat64;
}

bool is_bytes(const ColumnType& column) { return column.holds == Holds::kBytes; }

bool is_known_image(const ColumnType& column) {
  return is_bytes(column) && (column.is_image || std::ranges::count(usual_image_names(), column.name) > 0);
}

FieldKind usual_kind_of(const ColumnType& column) {
  const std::string_view last = std::string_view(column.name).substr(column.name.rfind('.') + 1);
  const FieldKind kind = usual_kind(column.name, last);
  if (column.holds == Holds::kText)
    return kind == FieldKind::kJson || column.is_json ? FieldKind::kJson : FieldKind::kText;
  if (column.holds == Holds::kNumbers) return is_integer(column) ? FieldKind::kInteger : FieldKind::kArray;
  const bool is_of_labels = last.starts_with("mask") || last.starts_with("seg");
  if (column.is_image) return is_of_labels ? FieldKind::kMask : FieldKind::kImage;
  // a struct of bytes and path, as datasets writes audio, without its schema
  if (column.is_audio || (column.is_file && last == "audio")) return FieldKind::kAudio;
  if (column.is_video) return FieldKind::kVideo;
  if (is_known_image(column)) return FieldKind::kImage;
  return kind == FieldKind::kText || kind == FieldKind::kJson ? kind : FieldKind::kBytes;
}

// Returns whether values of this type can be converted to a field of this kind.
bool can_be(const ColumnType& column, FieldKind kind) {
  if (column.is_nested) return kind == FieldKind::kJson || (kind == FieldKind::kText && !column.has_bytes);
  if (column.holds != Holds::kNumbers) return kind != FieldKind::kArray || is_bytes(column);
  switch (kind) {
    case FieldKind::kInteger:
      return is_integer(column);
    case FieldKind::kArray:
      return true;
    case FieldKind::kBoxes:
    case FieldKind::kKeypoints:
      return column.lists.dims() > 0;
    default:
      return false;
  }
}

Result<PickedColumn> choose(const WantedField& spec, const ColumnType& column) {
  if (column.holds == Holds::kOther)
    return config_error("fields: the column '" + column.name + "' holds " + described(column) +
                        ", which this version cannot read as a field: store it as JSON text and read that with '" +
                        column.name + ":json', or leave it out");
  PickedColumn field;
  field.column = column;
  field.description.name = spec.name;
  field.description.kind = spec.said.value_or(usual_kind_of(column));
  if (!can_be(column, field.description.kind))
    return config_error("fields: the column '" + column.name + "' holds " + described(column) + ", so the field '" +
                        spec.name + "' cannot be of kind " + std::string(name_of(field.description.kind)));
  if (column.lists.dims() == 1 && field.description.kind == FieldKind::kBoxes) field.row_of = 4;
  if (column.lists.dims() == 1 && field.description.kind == FieldKind::kKeypoints) field.row_of = 2;
  return field;
}

// Removes ":nan" or ":valid" from the end of a spec, which only tables support.
NullValue take_null_value(std::string& spec) {
  constexpr struct {
    std::string_view end;
    NullValue null;
  } kEnds[] = {{":nan", NullValue::kNan}, {":valid", NullValue::kFlag}};
  for (const auto& [end, null] : kEnds) {
    if (!spec.ends_with(end)) continue;
    spec.resize(spec.size() - end.size());
    return null;
  }
  return NullValue::kError;
}

// Chooses single numbers that are converted: with a value for nulls, or as a column of a matrix.
Result<PickedColumn> choose_converted(const WantedField& spec, const ColumnType& column, NullValue null,
                                      bool is_of_matrix) {
  const bool may_be_any = null == NullValue::kFlag && !is_of_matrix;
  if (!is_single(column) && !(may_be_any && column.holds != Holds::kOther))
    return config_error("fields: the column '" + column.name + "' holds " + described(column) + ", but " +
                        (is_of_matrix ? "the columns of '" + spec.name + "' must hold one number per row"
                                      : "':nan' needs one number per row"));
  if (spec.said && *spec.said != FieldKind::kArray)
    return config_error("fields: '" + spec.name + "' is an array and cannot be of kind " +
                        std::string(name_of(*spec.said)));
  PickedColumn field;
  field.column = column;
  field.description.name = spec.name;
  field.description.kind = FieldKind::kArray;
  field.null = null;
  field.made = null == NullValue::kFlag ? DType::kBool
               : is_of_matrix           ? DType::kFloat32
               : is_integer(column)     ? DType::kFloat64
                                        : column.dtype;
  return field;
}

// Returns the spec "COLUMN" or "COLUMN:KIND" of a column whose name contains the separators of specs, or nullopt if no
// column has this name.
std::optional<WantedField> spec_of_whole_name(const std::string& text, const std::vector<ColumnType>& columns) {
  const auto of = [&](const std::string& name, std::optional<FieldKind> kind) -> std::optional<WantedField> {
    if (name.find_first_of(":=;+") == name.npos || std::ranges::find(columns, name, &ColumnType::name) == columns.end())
      return std::nullopt;
    return WantedField{name, {name}, kind};
  };
  if (auto whole = of(text, {})) return whole;
  const std::size_t colon = text.rfind(':');
  const auto kind = colon == text.npos ? std::nullopt : field_kind_of(std::string_view(text).substr(colon + 1));
  return kind ? of(text.substr(0, colon), kind) : std::nullopt;
}

// Returns a column of this name: the nested one if there are two and `is_nested` is true. nullptr if there is none.
const ColumnType* find_form(const std::string& name, bool is_nested, const std::vector<ColumnType>& columns) {
  const ColumnType* found = nullptr;
  for (const ColumnType& column : columns)
    if (column.name == name && (found == nullptr || column.is_nested == is_nested)) {
      found = &column;
      if (column.is_nested == is_nested) break;
    }
  return found;
}

const ColumnType* find_column(const std::string& name, std::optional<FieldKind> kind,
                              const std::vector<ColumnType>& columns) {
  const bool is_nested = kind == FieldKind::kJson || kind == FieldKind::kText;
  const ColumnType* const found = find_form(name, is_nested, columns);
  return found != nullptr && found->holds != Holds::kNothing ? found : nullptr;
}

// Chooses the columns of "A+B+C". Returns an empty list if one of them does not exist.
Result<std::vector<PickedColumn>> choose_matrix(const WantedField& spec, const std::string& names, NullValue null,
                                                const std::vector<ColumnType>& columns) {
  std::vector<PickedColumn> fields;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find('+', begin), names.size());
    const ColumnType* const column = find_column(names.substr(begin, end - begin), {}, columns);
    if (column == nullptr) return std::vector<PickedColumn>();
    FEEDLINE_TRY(fields.emplace_back(), choose_converted(spec, *column, null, true));
    begin = end + 1;
  }
  if (spec.name == names)
    return config_error("fields: a field of several columns needs a name: use 'NAME=" + names + "'");
  for (PickedColumn& field : fields) field.members = 0;
  fields.front().members = fields.size();
  return fields;
}

// Chooses the columns of one field.
Result<std::vector<PickedColumn>> choose(const WantedField& spec, NullValue null,
                                         const std::vector<ColumnType>& columns) {
  for (const std::string& name : spec.alternatives) {
    if (const ColumnType* const column = find_column(name, spec.said, columns)) {
      auto field = null == NullValue::kError ? choose(spec, *column) : choose_converted(spec, *column, null, false);
      if (!field) return std::unexpected(std::move(field).error());
      return std::vector<PickedColumn>{std::move(*field)};
    }
    if (name.find('+') == name.npos) continue;
    FEEDLINE_TRY(auto fields, choose_matrix(spec, name, null, columns));
    if (!fields.empty()) return fields;
  }
  return config_error("no column for the field '" + spec.name + "' (" + spec.names() + "); the columns are " +
                      names_of(columns));
}

// Returns the image column: the only image column according to the schema or, failing that, according to column names.
const ColumnType* image_of(const std::vector<ColumnType>& columns) {
  const ColumnType* said = nullptr;
  for (const ColumnType& column : columns) {
    if (!column.is_image || usual_kind_of(column) != FieldKind::kImage) continue;
    if (said != nullptr) return nullptr;
    said = &column;
  }
  if (said != nullptr) return said;
  for (const std::string_view name : usual_image_names()) {
    const auto found = std::ranges::find(columns, name, &ColumnType::name);
    if (found != columns.end() && is_bytes(*found)) return &*found;
  }
  return nullptr;
}

const ColumnType* label_of(const std::vector<ColumnType>& columns) {
  for (const std::string_view name : kLabelNamesOfColumns) {
    const auto found = std::ranges::find(columns, name, &ColumnType::name);
    if (found != columns.end() && is_integer(*found)) return &*found;
  }
  const auto has_classes = [](const ColumnType& column) { return !column.classes.empty() && is_integer(column); };
  if (std::ranges::count_if(columns, has_classes) != 1) return nullptr;
  return &*std::ranges::find_if(columns, has_classes);
}

Result<std::vector<PickedColumn>> default_columns(const std::vector<ColumnType>& columns) {
  std::vector<PickedColumn> fields;
  const ColumnType* const image = image_of(columns);
  if (image != nullptr) {
    FEEDLINE_TRY(fields.emplace_back(), choose({"image", {}, {}}, *image));
    if (const ColumnType* const label = label_of(columns)) {
      FEEDLINE_TRY(fields.emplace_back(), choose({"label", {}, {}}, *label));
    }
    return fields;
  }
  for (const ColumnType& column : columns) {
    if (column.holds == Holds::kOther || column.holds == Holds::kNothing || column.is_member || column.is_on_request)
      continue;
    FEEDLINE_TRY(fields.emplace_back(), choose({column.name, {}, {}}, column));
  }
  if (!fields.empty()) return fields;
  return config_error("no column can be a field; the columns are " + names_of(columns));
}

}  // namespace

Result<std::vector<PickedColumn>> pick_columns(const std::vector<std::string>& specs,
                                               const std::vector<ColumnType>& columns) {
  if (specs.empty()) return default_columns(columns);
  std::vector<PickedColumn> fields;
  for (const std::string& text : specs) {
    std::string rest = text;
    NullValue null = NullValue::kError;
    auto whole = spec_of_whole_name(text, columns);
    if (!whole) {
      null = take_null_value(rest);
      FEEDLINE_TRY(whole, parse_wanted_field(rest, "column"));
    }
    const WantedField& spec = *whole;
    for (const PickedColumn& other : fields)
      if (other.description.name == spec.name)
        return config_error("fields: two fields are called '" + spec.name + "'; put NAME= before one of them");
    FEEDLINE_TRY(auto chosen, choose(spec, null, columns));
    std::ranges::move(chosen, std::back_inserter(fields));
  }
  return fields;
}

void complete_columns(std::vector<ColumnType>& columns, const std::vector<ColumnType>& of_another) {
  std::vector<ColumnType> added;
  for (ColumnType& column : columns) {
    if (column.holds != Holds::kNothing) continue;
    const auto other = std::ranges::find(of_another, column.name, &ColumnType::name);
    if (other == of_another.end()) continue;
    column = *other;
    const ColumnType* const nested = find_form(column.name, true, of_another);
    if (nested->is_on_request && nested != &*other) added.push_back(*nested);
  }
  std::ranges::move(added, std::back_inserter(columns));
}

Result<std::vector<std::size_t>> find_columns(const std::vector<PickedColumn>& fields,
                                              const std::vector<ColumnType>& columns) {
  std::vector<std::size_t> found;
  for (const PickedColumn& field : fields) {
    const ColumnType* const at = find_form(field.column.name, field.column.is_nested, columns);
    if (at == nullptr)
      return config_error("the file has no column '" + field.column.name + "', which others have; the columns are " +
                          names_of(columns));
    if (at->holds != Holds::kNothing && !have_same_values(*at, field.column))
      return config_error("the column '" + field.column.name + "' holds " + described(*at) + " in this file, but " +
                          described(field.column) + " in others: the schema changes between files");
    found.push_back(static_cast<std::size_t>(at - columns.data()));
  }
  return found;
}

std::vector<std::size_t> columns_of_unknown_bytes(const std::vector<std::string>& specs,
                                                  const std::vector<ColumnType>& columns) {
  std::vector<std::size_t> found;
  const auto is_unknown = [](const ColumnType& column) {
    return is_bytes(column) && usual_kind_of(column) == FieldKind::kBytes;
  };
  if (specs.empty() && image_of(columns) != nullptr) return found;
  for (std::size_t i = 0; specs.empty() && i < columns.size(); ++i)
    if (is_unknown(columns[i])) found.push_back(i);
  for (const std::string& text : specs) {
    const auto whole = spec_of_whole_name(text, columns);
    const auto spec = whole ? Result<WantedField>(*whole) : parse_wanted_field(text, "column");
    if (!spec || spec->said) continue;  // pick_columns() reports the error
    for (const std::string& name : spec->alternatives) {
      const auto column = std::ranges::find(columns, name, &ColumnType::name);
      if (column == columns.end() || column->holds == Holds::kNothing) continue;
      const auto at = static_cast<std::size_t>(column - columns.begin());
      if (is_unknown(*column) && std::ranges::count(found, at) == 0) found.push_back(at);
      break;
    }
  }
  return found;
}

std::vector<FieldRemark> remarks_of(const std::vector<PickedColumn>& fields) {
  std::vector<FieldRemark> remarks;
  for (const PickedColumn& field : fields)
    if (!field.column.meaning.empty())
      remarks.push_back({field.description.name, field.column.unit, described(field.column)});
  return remarks;
}

std::vector<UnopenedColumn> unopened_columns(const std::vector<PickedColumn>& fields, bool are_default,
                                             const std::vector<ColumnType>& columns) {
  std::vector<UnopenedColumn> left;
  for (const ColumnType& column : columns) {
    const auto is_of = [&](const PickedColumn& field) { return field.column.name == column.name; };
    if (column.is_on_request || std::ranges::any_of(fields, is_of)) continue;
    if (column.holds == Holds::kOther || column.holds == Holds::kNothing) {
      left.push_back(unread_column(column));
      continue;
    }
    left.push_back({column.name, described(column), are_default ? "not a default field" : "not in fields=",
                    column.name + ":" + std::string(name_of(usual_kind_of(column)))});
  }
  return left;
}

UnopenedColumn unread_column(const ColumnType& column) {
  return {column.name, described(column),
          column.holds == Holds::kNothing ? "no row has a value" : "this version does not read this type", ""};
}

std::string names_of(const std::vector<ColumnType>& columns) {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t shown = 0;
  for (const ColumnType& column : columns) {
    if (column.is_on_request) continue;
    if (shown++ == kShown) return text + ", ...";
    text += (text.empty() ? "" : ", ") + column.name + " (" + described(column) + ")";
  }
  return text.empty() ? "no columns" : text;
}

}  // namespace feedline::format
