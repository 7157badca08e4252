// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <utility>

#include "pipeline/field_path.h"

namespace feedline::pipeline {

// An integer, which the format has parsed.
class ValuePath final : public FieldPath {
 public:
  explicit ValuePath(std::string name) : FieldPath({std::move(name), {DType::kInt64, {}}}) {}

  Result<void> fill(const memory::Record::Field& stored, FieldWork& /*work*/, const ArrayView& row) const override {
    std::memcpy(row.data, &stored.value, sizeof stored.value);
    return {};
  }
  Result<void> keep(const memory::Record::Field& stored, FieldWork& /*work*/,
                    format::PixelRecordBuilder& kept) const override {
    kept.add_integer(stored.value);
    return {};
  }
};

}  // namespace feedline::pipeline
