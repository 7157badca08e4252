// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace feedline::storage {

// Guesses from its duration whether a blocking read waited for a device or a network. This works for every storage,
// while queries of the page cache (RWF_NOWAIT, mincore) work only for local files. If a photo of 110 KB is in the page
// cache, opening, reading and closing it takes 20 to 30 us; a local NVMe drive needs 100 us for the first byte.
inline bool is_slow(std::uint64_t ns, std::uint64_t bytes) {
  constexpr std::uint64_t kCallsNs = 40'000;
  constexpr std::uint64_t kBytesPerNs = 1;  // 1 GB/s: slower than any copy from memory
  return ns > kCallsNs + bytes / kBytesPerNs;
}

}  // namespace feedline::storage
