// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "pipeline/field_path.h"

namespace feedline::pipeline {

// An array in a .npy file, as it is stored, or without the rows whose boxes are left out.
class ArrayPath final : public FieldPath {
 public:
  // The spec has the dtype and extents of all rows: kAnyLength where they may differ.
  // belongs_to_boxes: sanitize_bounding_boxes names it, so that its rows go with those of the sample's boxes, which are
  // moved before.
  ArrayPath(FieldSpec spec, bool belongs_to_boxes) : FieldPath(std::move(spec)), belongs_to_boxes_(belongs_to_boxes) {}

  bool gives_stored_row() const override { return !belongs_to_boxes_; }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                    format::PixelRecordBuilder& record) const override;

 private:
  const bool belongs_to_boxes_;
};

}  // namespace feedline::pipeline
