// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many scans a JPEG may have. Every scan is a walk over all blocks, and one that says nothing takes few bytes:
// without a limit a file of 1 MB keeps a core busy for hours, in libjpeg and in Pillow.

#include <algorithm>
#include <cstdint>

namespace feedline::decode {

// Ordinary progressive files have about 10. 500 up to 4 million pixels, fewer of larger images, 64 of any: where
// nothing but zeros is refined, 90 ns a block in libjpeg, the largest image takes some 15 seconds.
constexpr int most_scans(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 31, kFewest = 64, kMost = 500;
  return static_cast<int>(std::clamp(kMostPixels / std::max<std::int64_t>(1, width * height), kFewest, kMost));
}

}  // namespace feedline::decode
