// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Base class of the row formats. Immutable after construction, so that all methods are thread-safe.
class FilledFormat : public RowFormat {
 public:
  const std::vector<FieldDescription>& fields() const final { return fields_; }
  const std::vector<std::string>& classes() const final { return classes_; }
  std::uint64_t grain() const final { return grain_; }
  Result<Inspection> inspect() const override;

 protected:
  // `sample_bytes` is the size of a typical sample in a batch.
  FilledFormat(std::vector<FieldDescription> fields, std::uint64_t sample_bytes);

 private:
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;
  std::uint64_t grain_;
};

// Writes `value`, which has `bytes` bytes, `count` times. Requires: `out` is aligned for the element type.
void fill_elements(std::byte* out, std::uint64_t count, const Element& value, std::size_t bytes);

// Returns the number of samples of this size that a thread processes as one group. Groups must not be too small,
// because each group costs about a microsecond, nor too large, because the order of a group's samples is computed while
// a lock is held.
std::uint64_t grain_of(std::uint64_t sample_bytes);

}  // namespace feedline::format
