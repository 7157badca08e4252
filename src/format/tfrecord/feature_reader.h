// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a record's features to its fields.

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/tfrecord/feature_choice.h"
#include "memory/record.h"

namespace feedline::format {

// Why a record is no sample: its error, and the code of a finding.
struct ReadProblem {
  std::string_view code;
  Error error;
};

// Immutable; any thread may use it.
class FeatureReader {
 public:
  explicit FeatureReader(std::vector<FeatureChoice> fields) : fields_(std::move(fields)) {}

  const std::vector<FeatureChoice>& fields() const { return fields_; }
  // Byte strings stay where they are in `data`; numbers become the .npy files that array fields are made of, in
  // record.more.
  std::expected<void, ReadProblem> read(std::span<const std::byte> data, memory::Record& record) const;

 private:
  std::vector<FeatureChoice> fields_;
};

}  // namespace feedline::format
