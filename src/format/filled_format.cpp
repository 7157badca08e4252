// SPDX-License-Identifier: Apache-2.0
#include "format/filled_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace feedline::format {

FilledFormat::FilledFormat(std::vector<FieldDescription> fields) : fields_(std::move(fields)) {
  for (const FieldDescription& field : fields_) sample_bytes_ += field.array.bytes();
  grain_ = grain_of(sample_bytes_);
}

Result<void> FilledFormat::read(std::uint64_t /*index*/, memory::Record& /*record*/) const {
  FEEDLINE_CHECK(!"arrays are filled, not read");
}

Result<Inspection> FilledFormat::inspect() const {
  return config_error("inspect: " + std::string(name()) + " hold nothing that a reader could drop or merge");
}

std::uint64_t grain_of(std::uint64_t sample_bytes) {
  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr std::uint64_t kMost = 64;
  return std::clamp(kBytes / std::max<std::uint64_t>(sample_bytes, 1), std::uint64_t{1}, kMost);
}

}  // namespace feedline::format
