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

// The error of an invalid record, with the code of its finding.
struct ReadProblem {
  std::string_view code;
  Error error;
};

// Immutable and thread-safe.
class FeatureReader {
 public:
  explicit FeatureReader(std::vector<FeatureChoice> fields) : fields_(std::move(fields)) {}

  const std::vector<FeatureChoice>& fields() const { return fields_; }
  // Converts a record. Byte strings are views of `data`. The numbers of array fields are written as .npy files to
  // record.more.
  std::expected<void, ReadProblem> read(std::span<const std::byte> data, memory::Record& record) const;

 private:
  std::vector<FeatureChoice> fields_;
};

}  // namespace feedline::format
