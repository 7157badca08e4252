// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "pipeline/fields/field_path.h"

namespace feedline::pipeline {

// An array from a .npy file, unchanged or without the rows whose boxes were dropped.
class ArrayPath final : public FieldPath {
 public:
  // The spec has the dtype and extents of all rows; extents that may differ are kAnyLength. belongs_to_boxes:
  // sanitize_bounding_boxes names this field, so its rows are dropped with the sample's boxes, which are processed
  // first.
  ArrayPath(FieldSpec spec, bool belongs_to_boxes) : FieldPath(std::move(spec)), belongs_to_boxes_(belongs_to_boxes) {}

  bool gives_stored_row() const override { return !belongs_to_boxes_; }
  bool copies_numbers() const override { return !belongs_to_boxes_ && spec().form == BatchForm::kDense; }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& record) const override;

 private:
  const bool belongs_to_boxes_;
};

}  // namespace feedline::pipeline
