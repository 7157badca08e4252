// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Common base of the row formats. Immutable after construction, so every method is thread-safe.
class FilledFormat : public RowFormat {
 public:
  const std::vector<FieldDescription>& fields() const final { return fields_; }
  const std::vector<std::string>& classes() const final { return classes_; }
  std::uint64_t grain() const final { return grain_; }
  Result<Inspection> inspect() const final;

 protected:
  // sample_bytes: the size of a typical sample in a batch.
  FilledFormat(std::vector<FieldDescription> fields, std::uint64_t sample_bytes);

 private:
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;
  std::uint64_t grain_;
};

// Writes `value`, of `bytes` bytes, `count` times. Requires: `out` is aligned for it.
void fill_elements(std::byte* out, std::uint64_t count, const Element& value, std::size_t bytes);

// The number of samples of this size to give to a thread at a time. Handing out a group costs about a microsecond, and
// ordering each sample a tenth of that under the lock, so the number is neither one nor thousands.
std::uint64_t grain_of(std::uint64_t sample_bytes);

}  // namespace feedline::format
