// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/field_path.h"

namespace feedline::pipeline {

// An array in a .npy file, as it is stored.
class ArrayPath final : public FieldPath {
 public:
  // The spec has the dtype and extents of all rows: kAnyLength where they may differ.
  using FieldPath::FieldPath;

  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> keep(const memory::Record::Field& stored, FieldWork& work,
                    format::PixelRecordBuilder& kept) const override;
};

}  // namespace feedline::pipeline
