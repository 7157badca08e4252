// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rewrites a JPEG losslessly with restart markers: the coefficients and the header are unchanged, so the pixels are
// too. A region can then be decoded from only the intervals that it touches.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

inline constexpr int kRestartIntervalBySize = 0;
inline constexpr int kMostRestartMcus = 65535;  // 16 bits

// The number of MCUs between restart markers that suits most crops of an image with the given number of pixels; empty
// if markers cost more than they save. docs/pack.md has the measurements.
std::optional<int> restart_interval_for(int width, int height);

// `interval`: MCUs between markers, 1 to kMostRestartMcus, or kRestartIntervalBySize. Empty if the image should stay
// unchanged: not a JPEG, too small for the size's interval, or of a kind that gains nothing (progressive, arithmetic,
// multi-scan, CMYK, unusual sampling). kData if pixels are missing or damaged. The header and the bytes after the image
// are copied byte for byte, except for the restart interval and for Huffman tables without a code that the markers
// need; those tables are rebuilt.
Result<std::optional<std::vector<std::byte>>> with_restarts(std::span<const std::byte> encoded, int interval);

}  // namespace feedline::decode
