// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checksums that an MDS index may have of its shards, by the names of Python's hashlib and xxhash.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace feedline::format {

// Of bytes that come one after the other. Not for several threads at once.
class RunningDigest {
 public:
  virtual ~RunningDigest() = default;
  virtual void add(std::span<const std::byte> bytes) = 0;
  virtual std::string hex() = 0;  // of all of them; nothing may follow
};

// "md5", "sha1", "sha256", "xxh32", "xxh64", "xxh3_64", "xxh3_128" and "xxh128"; nullptr: another one.
std::unique_ptr<RunningDigest> make_digest(std::string_view algorithm);

}  // namespace feedline::format
