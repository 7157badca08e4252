// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checksum algorithms that an MDS index may use for its shards, by their names in Python's hashlib and xxhash.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace feedline::format {

// Computes a checksum incrementally. Not thread-safe.
class RunningDigest {
 public:
  virtual ~RunningDigest() = default;
  virtual void add(std::span<const std::byte> bytes) = 0;
  virtual std::string hex() = 0;  // checksum of all bytes; call add() no more after this
};

// Creates a digest for "md5", "sha1", "sha256", "xxh32", "xxh64", "xxh3_64", "xxh3_128" or "xxh128". Returns nullptr
// for any other name.
std::unique_ptr<RunningDigest> make_digest(std::string_view algorithm);

}  // namespace feedline::format
