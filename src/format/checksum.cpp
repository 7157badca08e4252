// SPDX-License-Identifier: Apache-2.0
#include "format/checksum.h"

namespace feedline::format {

void Fingerprint::add(std::span<const std::byte> bytes) {
  // hash the length first, so that ("ab", "c") and ("a", "bc") differ
  const std::uint64_t length = bytes.size();
  value_ = xxh3(bytes, xxh3(std::as_bytes(std::span(&length, 1)), value_));
}

}  // namespace feedline::format
