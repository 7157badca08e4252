// SPDX-License-Identifier: Apache-2.0
#include "format/rows/row_columns.h"

#include <optional>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "format/arrays/named_arrays.h"
#include "format/field_kind.h"
#include "format/rows/text_cells.h"

namespace feedline::format {
namespace {

bool is_float(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kBfloat16;
}

struct Rows {
  std::uint64_t operator()(const FileColumn& column) const {
    return column.offsets ? column.offsets->size() - 1 : column.cells.front()->rows;
  }
  std::uint64_t operator()(const TextColumn& column) const { return column.cells->rows; }
  std::uint64_t operator()(const NumberColumn& column) const { return samples_of(column.array); }
  std::uint64_t operator()(const MultiHotColumn& column) const { return samples_of(column.codes); }
};

struct Field {
  Result<FieldDescription> operator()(const FileColumn& column) const {
    const auto kind = field_kind_of(column.kind);
    if (!kind || *kind == FieldKind::kInteger)
      return config_error("the field '" + column.name + "' cannot be '" + column.kind +
                          "': use image, mask, array, bytes, text, json, boxes or keypoints for files");
    FieldDescription field{.name = column.name, .kind = *kind};
    for (std::uint64_t row = 0; column.offsets && row + 1 < column.offsets->size(); ++row)
      field.may_be_absent = field.may_be_absent || !has_file(column, row);
    return field;
  }
  Result<FieldDescription> operator()(const TextColumn& column) const {
    return FieldDescription{.name = column.name, .kind = FieldKind::kText};
  }
  Result<FieldDescription> operator()(const NumberColumn& column) const {
    const NamedArray& array = column.array;
    const auto kind = field_kind_of(array.kind);
    const Shape shape = array.offsets.empty() ? array.row.shape : array.row.shape.with_front(kAnyLength);
    const std::size_t dims = shape.dims();
    const auto wrong = [&](const std::string& needs) {
      return config_error("the field '" + array.name + "' cannot be '" + array.kind + "': its rows have the shape " +
                          shape.to_string() + " and the dtype " + std::string(name_of(array.row.dtype)) + "; " + needs);
    };
    if (kind == FieldKind::kInteger && (dims != 0 || is_float(array.row.dtype))) return wrong("a value is one integer");
    if (kind == FieldKind::kBoxes && (dims != 2 || shape[1] != 4)) return wrong("boxes are (N, 4)");
    if (kind == FieldKind::kKeypoints && (dims < 2 || dims > 3 || shape[dims - 1] != 2))
      return wrong("keypoints are (N, 2) or (N, K, 2)");
    if (kind != FieldKind::kInteger && kind != FieldKind::kArray && kind != FieldKind::kBoxes &&
        kind != FieldKind::kKeypoints)
      return wrong("use value, array, boxes or keypoints for numbers");
    FieldDescription field{.name = array.name, .kind = *kind, .pad = array.pad};
    if (*kind == FieldKind::kArray) field.array = {array.row.dtype, shape};
    return field;
  }
  Result<FieldDescription> operator()(const MultiHotColumn& column) const {
    const Shape shape = Shape().with_front(static_cast<std::int64_t>(column.classes));
    return FieldDescription{.name = column.codes.name, .kind = FieldKind::kArray, .array = {DType::kFloat32, shape}};
  }
};

bool is_relative(std::string_view path) { return !path.starts_with('/') && !path.contains("://"); }

}  // namespace

std::uint64_t rows_of(const RowColumn& column) { return std::visit(Rows(), column); }

Result<FieldDescription> field_of(const RowColumn& column) { return std::visit(Field(), column); }

bool has_file(const FileColumn& column, std::uint64_t row) {
  if (!column.offsets) return true;
  const auto& offsets = *column.offsets;
  return column.position < static_cast<std::uint64_t>(offsets[row + 1] - offsets[row]);
}

void find_path(const FileColumn& column, std::uint64_t row, std::string& path, std::string& room) {
  const std::uint64_t cell =
      column.offsets ? static_cast<std::uint64_t>((*column.offsets)[row]) + column.position : row;
  path = column.literals.front();
  for (std::size_t i = 0; i < column.cells.size(); ++i)
    path.append(text_of(*column.cells[i], cell, room)).append(column.literals[i + 1]);
  if (column.root.empty() || !is_relative(path)) return;
  path.insert(0, column.root.ends_with('/') ? "" : "/").insert(0, column.root);
}

}  // namespace feedline::format
