// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads numbers and signatures in the first bytes of files.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace feedline::decode {

using Bytes = std::span<const std::byte>;

// Requires: `bytes` has at most 4 bytes.
inline std::uint32_t number(Bytes bytes, bool big_endian) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value = value << 8 | static_cast<std::uint32_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  return value;
}

// Returns at most `size` bytes from `begin`, fewer at the end of the data.
inline Bytes part(Bytes bytes, std::size_t begin, std::size_t size = static_cast<std::size_t>(-1)) {
  bytes = bytes.subspan(std::min(begin, bytes.size()));
  return bytes.first(std::min(size, bytes.size()));
}

inline bool begins_with(Bytes bytes, std::string_view text) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()).starts_with(text);
}

}  // namespace feedline::decode
