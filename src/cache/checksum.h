// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace feedline::cache {

// XXH3-64. The result is the same on every machine and in every version, so it can be stored. The checksum does not
// protect against forgery.
std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed = 0);

// Hashes consecutive chunks of bytes.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 16 hexadecimal digits.
std::string hex_of(std::uint64_t number);
// Returns 16 hexadecimal digits that identify an object, computed from its Storage::identity(), for file names in a
// cache folder.
std::string digest_of(std::string_view identity);

}  // namespace feedline::cache
