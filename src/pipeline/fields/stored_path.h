// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "pipeline/fields/field_path.h"

namespace feedline::pipeline {

// Bytes, text or JSON, which are validated and delivered as stored.
class StoredPath final : public FieldPath {
 public:
  using Check = Result<void> (*)(std::span<const std::byte> stored);
  StoredPath(std::string name, Content content, Check check);

  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;

 private:
  const Check check_;
};

}  // namespace feedline::pipeline
