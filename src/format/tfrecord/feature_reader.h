// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a record's features to its fields.

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

// The reason why a record is not a sample: its error, and the code of a finding.
struct ReadProblem {
  std::string_view code;
  Error error;
};

// Immutable and thread-safe.
class FeatureReader {
 public:
  explicit FeatureReader(std::vector<FeatureChoice> fields) : fields_(std::move(fields)) {}

  const std::vector<FeatureChoice>& fields() const { return fields_; }
  // Byte strings refer to `data`. Numbers are converted to .npy files in record.more, for array fields.
  std::expected<void, ReadProblem> read(std::span<const std::byte> data, memory::Record& record) const;

 private:
  std::vector<FeatureChoice> fields_;
};

}  // namespace feedline::format
