// SPDX-License-Identifier: Apache-2.0
#include "format/rows/row_columns.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
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
                          "': use image, mask, array, bytes, text, json, boxes, keypoints, audio or video for files");
    for (const auto* const times : {&column.begins, &column.durations})
      if (!times->empty() && times->size() != Rows()(column))
        return config_error("the field '" + column.name + "' has " + std::to_string(Rows()(column)) + " files, but " +
                            std::to_string(times->size()) + " times");
    if (!column.channels.empty() && column.channels.size() != Rows()(column))
      return config_error("the field '" + column.name + "' has " + std::to_string(Rows()(column)) + " files, but " +
                          std::to_string(column.channels.size()) + " channels");
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
    if (kind == FieldKind::kInteger && (dims != 0 || is_float(array.row.dtype)))
      return wrong("a value must be one integer");
    if (kind == FieldKind::kBoxes && (dims != 2 || shape[1] != 4)) return wrong("boxes are (N, 4)");
    if (kind == FieldKind::kKeypoints && (dims < 2 || dims > 3 || shape[dims - 1] != 2))
      return wrong("keypoints must have the shape (N, 2) or (N, K, 2)");
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

// Checks offsets of consecutive lists with `total` items.
Result<void> check_lists(const std::string& name, std::span<const std::int64_t> offsets, std::uint64_t total) {
  const std::string start = "the offsets of the field '" + name + "' ";
  if (offsets.empty()) return config_error(start + "are empty: there is one more offset than rows");
  if (offsets.front() != 0) return config_error(start + "begin at " + std::to_string(offsets.front()) + ", not at 0");
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row)
    if (offsets[row + 1] < offsets[row])
      return config_error(start + "descend in row " + std::to_string(row) + ", from " + std::to_string(offsets[row]) +
                          " to " + std::to_string(offsets[row + 1]));
  if (static_cast<std::uint64_t>(offsets.back()) == total) return {};
  return config_error(start + "end at " + std::to_string(offsets.back()) + ", but there are " + std::to_string(total) +
                      " values");
}

Result<void> check_cells(const std::string& name, const std::shared_ptr<const TextCells>& cells) {
  if (!cells) return config_error("the field '" + name + "' has no cells");
  auto checked = check(*cells);
  if (!checked) checked.error().what = "the field '" + name + "': " + checked.error().what;
  return checked;
}

struct CheckColumn {
  Result<void> operator()(const FileColumn& column) const {
    if (column.cells.empty() || column.literals.size() != column.cells.size() + 1)
      return config_error("the field '" + column.name + "' has " + std::to_string(column.cells.size()) +
                          " columns of cells and " + std::to_string(column.literals.size()) +
                          " texts around them; there must be at least one column, and one more text than columns");
    for (const auto& cells : column.cells) {
      FEEDLINE_CHECK_OK(check_cells(column.name, cells));
      if (cells->rows != column.cells.front()->rows)
        return config_error(
            "the paths of the field '" + column.name + "' are made from columns that differ in length: " +
            std::to_string(column.cells.front()->rows) + " and " + std::to_string(cells->rows) + " rows");
    }
    return column.offsets ? check_lists(column.name, *column.offsets, column.cells.front()->rows) : Result<void>();
  }
  Result<void> operator()(const TextColumn& column) const { return check_cells(column.name, column.cells); }
  Result<void> operator()(const NumberColumn& column) const { return check_array(column.array); }
  Result<void> operator()(const MultiHotColumn& column) const {
    const NamedArray& array = column.codes;
    if (array.row != ArraySpec{DType::kInt32, {}})
      return config_error("the classes of the field '" + array.name + "' must be int32");
    FEEDLINE_CHECK_OK(check_array(array));
    for (std::uint64_t row = 0; row < samples_of(array); ++row) {
      const auto bytes = row_of(array, row).bytes;
      for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::int32_t)) {
        std::int32_t code = 0;
        std::memcpy(&code, bytes.data() + i, sizeof code);
        if (code < 0 || static_cast<std::uint64_t>(code) >= column.classes)
          return config_error("row " + std::to_string(row) + " of the field '" + array.name + "' has the class " +
                              std::to_string(code) + ", but there are " + std::to_string(column.classes) + " classes");
      }
    }
    return {};
  }

 private:
  static Result<void> check_array(const NamedArray& array) {
    return array.offsets.empty() ? Result<void>() : check_lists(array.name, array.offsets, array.rows);
  }
};

std::uint64_t cell_of(const FileColumn& column, std::uint64_t row) {
  return column.offsets ? static_cast<std::uint64_t>((*column.offsets)[row]) + column.position : row;
}

bool is_relative(std::string_view path) { return !path.starts_with('/') && !path.contains("://"); }

}  // namespace

Result<void> check_column(const RowColumn& column) { return std::visit(CheckColumn(), column); }

std::uint64_t rows_of(const RowColumn& column) { return std::visit(Rows(), column); }

Result<FieldDescription> field_of(const RowColumn& column) { return std::visit(Field(), column); }

bool has_file(const FileColumn& column, std::uint64_t row) {
  if (!column.offsets) return true;
  const auto& offsets = *column.offsets;
  return column.position < static_cast<std::uint64_t>(offsets[row + 1] - offsets[row]);
}

bool is_path_empty(const FileColumn& column, std::uint64_t row, std::string& room) {
  const std::uint64_t cell = cell_of(column, row);
  return std::ranges::all_of(column.literals, [](const std::string& literal) { return literal.empty(); }) &&
         std::ranges::all_of(column.cells, [&](const auto& cells) { return text_of(*cells, cell, room).empty(); });
}

void find_path(const FileColumn& column, std::uint64_t row, std::string& path, std::string& room) {
  const std::uint64_t cell = cell_of(column, row);
  path = column.literals.front();
  for (std::size_t i = 0; i < column.cells.size(); ++i)
    path.append(text_of(*column.cells[i], cell, room)).append(column.literals[i + 1]);
  if (column.root.empty() || !is_relative(path)) return;
  path.insert(0, column.root.size() + (column.root.ends_with('/') ? 0 : 1), '/');
  std::ranges::copy(column.root, path.begin());
}

}  // namespace feedline::format
