// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the number of scans in a JPEG. Every scan is a pass over all blocks, and an empty scan needs few bytes:
// without a limit a 1 MB file keeps a core busy for hours, in libjpeg and in Pillow.

#include <algorithm>
#include <cstdint>

namespace feedline::decode {

// Ordinary progressive files have about 10 scans. The limit is 500 up to 4 million pixels and decreases to 64 for
// larger images: at libjpeg's 90 ns per block for refining zeros, the largest image takes about 15 seconds.
constexpr int most_scans(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 31, kFewest = 64, kMost = 500;
  return static_cast<int>(std::clamp(kMostPixels / std::max<std::int64_t>(1, width * height), kFewest, kMost));
}

}  // namespace feedline::decode
