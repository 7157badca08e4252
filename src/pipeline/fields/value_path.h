// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "pipeline/fields/field_path.h"

namespace feedline::pipeline {

// An integer that the format has already parsed.
class ValuePath final : public FieldPath {
 public:
  ValuePath(std::string name, BatchForm form)
      : FieldPath({.name = std::move(name), .array = {DType::kInt64, {}}, .form = form}) {}

  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override {
    FEEDLINE_TRY(const ArrayView out, destination(row, {}, work));
    std::memcpy(out.data, &stored.value, sizeof stored.value);
    return {};
  }
  bool copies_numbers() const override { return spec().form == BatchForm::kDense; }
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& /*work*/,
                       format::PixelRecordBuilder& cached) const override {
    cached.add_integer(stored.value);
    return {};
  }
};

}  // namespace feedline::pipeline
