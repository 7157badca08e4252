// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cache/checksum.h"

namespace feedline::format {

using cache::xxh3;

// Computes a 64-bit hash of a sequence of values.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(std::span<const std::uint64_t> numbers) { add(std::as_bytes(numbers)); }
  void add(std::uint64_t number) { add(std::span(&number, 1)); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace feedline::format
