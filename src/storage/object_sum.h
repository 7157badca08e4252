// SPDX-License-Identifier: Apache-2.0
#pragma once

// The expected checksum of an object, from its server or a manifest, which is compared with the bytes of the whole
// object. The checksum cannot be used to check a range.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "feedline/error.h"

namespace feedline::storage {

enum class SumKind : std::uint8_t { kCrc32c, kCrc64Nvme, kCrc32, kSha256 };  // fastest first

struct ObjectSum {
  SumKind kind = SumKind::kCrc32c;
  std::string value;  // its bytes, most significant first
  friend bool operator==(const ObjectSum&, const ObjectSum&) = default;
};
// "crc32c 1a2b3c4d"
std::string described(const ObjectSum& sum);
// Parse a checksum in the text form used by servers (base64) or manifests (hexadecimal). Return nullopt if the text is
// invalid or has the wrong length.
std::optional<ObjectSum> sum_of_base64(SumKind kind, std::string_view text);
std::optional<ObjectSum> sum_of_hex(SumKind kind, std::string_view text);

// Computes the checksum of data given in consecutive chunks.
class RunningSum {
 public:
  explicit RunningSum(SumKind kind) : kind_(kind) {}
  void add(std::span<const std::byte> bytes);
  ObjectSum sum() const;  // the checksum of all bytes so far

 private:
  SumKind kind_;
  std::uint64_t crc_ = 0;
  base::RunningSha256 sha256_;
};
ObjectSum sum_of(SumKind kind, std::span<const std::byte> bytes);

// Returns kStorage with both checksums and advice. said_by: the source of the checksum, such as "the server" or
// "feedline-pack.json".
std::unexpected<Error> sums_differ(const std::string& object, const ObjectSum& said, const ObjectSum& read,
                                   std::string_view said_by);

}  // namespace feedline::storage
