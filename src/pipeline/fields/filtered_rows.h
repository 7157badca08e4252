// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>

#include "feedline/array.h"
#include "feedline/error.h"
#include "pipeline/fields/field_scratch.h"

namespace feedline::pipeline {

// Selects the rows of a field that remain after sanitize_bounding_boxes has dropped boxes: each row belongs to one box.
class FilteredRows {
 public:
  // scratch: the memory of a sample whose boxes have been transformed; nullptr if the field does not belong to boxes.
  explicit FilteredRows(const TargetScratch* scratch)
      : boxes_(scratch != nullptr && scratch->boxes.sanitized ? &scratch->boxes : nullptr) {}

  bool are_all() const { return boxes_ == nullptr; }
  // Returns the shape of the array without the dropped rows. kData: the array does not have one row per box.
  Result<Shape> shape_of(const Shape& shape) const {
    if (are_all()) return shape;
    if (shape.dims() == 0 || shape[0] != static_cast<std::int64_t>(boxes_->rows_before))
      return data_error("an array of shape " + shape.to_string() + " does not match the " +
                            std::to_string(boxes_->rows_before) +
                            " boxes; sanitize_bounding_boxes(labels=) needs fields with one row per box",
                        "transform");
    return shape.with_first(static_cast<std::int64_t>(boxes_->remaining.size()));
  }
  // Requires: shape_of() succeeded, and `out` has room for the remaining rows.
  void copy(std::span<const std::byte> array, std::byte* out) const {
    if (are_all()) {
      if (!array.empty()) std::memcpy(out, array.data(), array.size());
      return;
    }
    const std::size_t row = boxes_->rows_before == 0 ? 0 : array.size() / boxes_->rows_before;
    for (const std::uint32_t remaining : boxes_->remaining) {
      if (row > 0) std::memcpy(out, array.data() + remaining * row, row);
      out += row;
    }
  }

 private:
  const transform::TargetDrawing* boxes_;
};

}  // namespace feedline::pipeline
