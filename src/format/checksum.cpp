// SPDX-License-Identifier: Apache-2.0
#include "format/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <filesystem>
#include <system_error>

namespace feedline::format {

std::uint64_t xxh3(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

void Fingerprint::add(std::span<const std::byte> bytes) {
  // the length goes in first: ("ab", "c") and ("a", "bc") differ
  const std::uint64_t length = bytes.size();
  value_ = xxh3(bytes, xxh3(std::as_bytes(std::span(&length, 1)), value_));
}

std::string path_digest(const std::string& path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  if (error) canonical = path;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digest(16, '0');
  std::uint64_t hash = xxh3(std::as_bytes(std::span(canonical.native())));
  for (auto digit = digest.rbegin(); digit != digest.rend(); ++digit, hash >>= 4) *digit = kDigits[hash & 15];
  return digest;
}

}  // namespace feedline::format
