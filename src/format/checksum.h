// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace feedline::format {

// XXH3-64: the same on every machine and in every version, so that it may be stored. Not against forgery.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// Folds values, in their order, into 64 bits.
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

// 16 hexadecimal digits that stand for a file, whichever way its path was written: for names in a cache folder.
std::string path_digest(const std::string& path);

}  // namespace feedline::format
