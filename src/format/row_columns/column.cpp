// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/column.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "format/field_kind.h"
#include "format/sources/image_names.h"
#include "format/wanted_field.h"

namespace feedline::format {
namespace {

// Common names of label columns in these formats.
constexpr std::array<std::string_view, 7> kLabels{"label", "class", "cls", "y", "target", "labels", "class_id"};

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

bool is_integer(DType dtype) {
  return dtype != DType::kFloat16 && dtype != DType::kFloat32 && dtype != DType::kFloat64;
}

bool is_of_labels(std::string_view name) { return name.starts_with("mask") || name.starts_with("seg"); }

FieldKind usual_kind_of(const Column& column) {
  const std::string_view name = last_part(column.name);
  switch (column.kind) {
    case ColumnKind::kText:
    case ColumnKind::kReal:
      return column.kind == ColumnKind::kReal && column.dtype ? FieldKind::kArray : FieldKind::kText;
    case ColumnKind::kJson:
      return FieldKind::kJson;
    case ColumnKind::kImage:
      return is_of_labels(name) ? FieldKind::kMask : FieldKind::kImage;
    case ColumnKind::kPixels:
      return is_of_labels(name) ? FieldKind::kArray : FieldKind::kImage;
    case ColumnKind::kNumber:
      return is_integer(*column.dtype) ? FieldKind::kInteger : FieldKind::kArray;
    case ColumnKind::kDigits:
      return FieldKind::kInteger;
    case ColumnKind::kArray:
      return FieldKind::kArray;
    case ColumnKind::kBytes: {  // stored files, whose kind is determined by the column's name
      const FieldKind kind = usual_kind(name, name);
      return kind == FieldKind::kBytes && name == "image" ? FieldKind::kImage : kind;
    }
    case ColumnKind::kImages:
    case ColumnKind::kRefused:
      break;
  }
  return FieldKind::kBytes;
}

bool can_be(const Column& column, FieldKind kind) {
  const bool is_target = kind == FieldKind::kBoxes || kind == FieldKind::kKeypoints;
  switch (column.kind) {
    case ColumnKind::kPixels:
      return kind == FieldKind::kImage || kind == FieldKind::kArray;
    case ColumnKind::kNumber:
      return kind == FieldKind::kArray || (kind == FieldKind::kInteger && is_integer(*column.dtype));
    case ColumnKind::kArray:
      return kind == FieldKind::kArray || is_target;
    case ColumnKind::kReal:
      return kind == FieldKind::kText || kind == FieldKind::kArray || kind == FieldKind::kBytes;
    case ColumnKind::kImages:
      return kind == FieldKind::kBytes;
    case ColumnKind::kRefused:
      return false;
    default:
      return true;  // stored files and text: checked when they are read
  }
}

std::unexpected<Error> refused(const Column& column) {
  return config_error("the column '" + column.name + "' is stored as '" + column.encoding +
                      "', which is not supported: " +
                      (column.encoding.starts_with("pkl") || column.encoding.starts_with("pickle")
                           ? "loading a pickle can run arbitrary code"
                           : "no kind of field can represent it") +
                      "; select other columns with fields=");
}

Result<ColumnChoice> choose(const WantedField& spec, const Columns& columns) {
  for (const std::string& name : spec.alternatives) {
    const auto found = std::ranges::find(columns, name, &Column::name);
    if (found == columns.end()) continue;
    if (found->kind == ColumnKind::kRefused) return refused(*found);
    const FieldKind kind = spec.said.value_or(usual_kind_of(*found));
    if (!can_be(*found, kind))
      return config_error("fields: the column '" + name + "' is stored as '" + found->encoding + "', so the field '" +
                          spec.name + "' cannot be of kind " + std::string(name_of(kind)));
    return ColumnChoice{FieldDescription{.name = spec.name, .kind = kind},
                        static_cast<std::size_t>(found - columns.begin())};
  }
  return config_error("no sample has the field '" + spec.name + "' (" + spec.names() + "); the columns are " +
                      names_of(columns));
}

// Returns the image column, recognised by its type or name, if there is exactly one.
const Column* only_image(const Columns& columns) {
  std::vector<const Column*> typed;
  for (const Column& column : columns)
    if ((column.kind == ColumnKind::kImage || column.kind == ColumnKind::kPixels) &&
        !is_of_labels(last_part(column.name)))
      typed.push_back(&column);
  if (typed.size() == 1) return typed.front();
  static const std::vector<std::string_view> names = image_column_names({"image"}, {"img", "x"});
  for (const std::string_view name : names)
    for (const Column& column : columns) {
      const bool is_image =
          typed.empty() ? column.kind == ColumnKind::kBytes && name != "x" : std::ranges::count(typed, &column) > 0;
      if (is_image && column.name == name) return &column;
    }
  return nullptr;
}

const Column* usual_label(const Columns& columns) {
  for (const std::string_view name : kLabels)
    for (const Column& column : columns) {
      const bool is_integer_column =
          column.kind == ColumnKind::kDigits || (column.kind == ColumnKind::kNumber && is_integer(*column.dtype));
      const bool is_file = column.kind == ColumnKind::kBytes && name == "cls";
      if (column.name == name && (is_integer_column || is_file)) return &column;
    }
  return nullptr;
}

Result<std::vector<ColumnChoice>> default_columns(const Columns& columns) {
  std::vector<ColumnChoice> fields;
  if (const Column* image = only_image(columns)) {
    FEEDLINE_TRY(fields.emplace_back(), choose({"image", {image->name}, FieldKind::kImage}, columns));
    if (const Column* label = usual_label(columns)) {
      FEEDLINE_TRY(fields.emplace_back(), choose({"label", {label->name}, FieldKind::kInteger}, columns));
    }
    return fields;
  }
  for (const Column& column : columns) {
    FEEDLINE_TRY(fields.emplace_back(), choose({column.name, {column.name}, {}}, columns));
  }
  return fields;
}

}  // namespace

std::string names_of(const Columns& columns) {
  constexpr std::size_t kMostShown = 20;
  std::string text;
  for (std::size_t i = 0; i < columns.size() && i < kMostShown; ++i)
    text += (i == 0 ? "" : ", ") + columns[i].name + " (" + columns[i].encoding + ")";
  return columns.size() > kMostShown ? text + ", ..." : text;
}

Result<std::vector<ColumnChoice>> choose_columns(const std::vector<std::string>& specs, const Columns& columns) {
  if (specs.empty()) return default_columns(columns);
  std::vector<ColumnChoice> fields;
  for (const std::string& text : specs) {
    FEEDLINE_TRY(const WantedField spec, parse_wanted_field(text, "column"));
    for (const ColumnChoice& other : fields)
      if (other.description.name == spec.name)
        return config_error("fields: two fields are called '" + spec.name + "'; put NAME= before one of them");
    FEEDLINE_TRY(fields.emplace_back(), choose(spec, columns));
  }
  return fields;
}

}  // namespace feedline::format
