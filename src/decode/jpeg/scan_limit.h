// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the number of scans in a JPEG. Every scan is a pass over all blocks, and an empty scan needs only a few bytes:
// without a limit, a 1 MB file can occupy a CPU core for hours, as in libjpeg and Pillow.

#include <algorithm>
#include <cstdint>

namespace feedline::decode {

// Typical progressive files have about 10 scans. The limit is 500 for up to 4 million pixels, and decreases to 64 for
// larger images: libjpeg takes 90 ns per block to refine zeros, so the largest image takes about 15 seconds.
constexpr int most_scans(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 31, kFewest = 64, kMost = 500;
  return static_cast<int>(std::clamp(kMostPixels / std::max<std::int64_t>(1, width * height), kFewest, kMost));
}

}  // namespace feedline::decode
