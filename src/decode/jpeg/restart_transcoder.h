// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds restart markers to a JPEG without loss: the coefficients and the header do not change, so the pixels do not
// change either. A region can then be decoded from only those intervals that it touches.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

inline constexpr int kRestartIntervalBySize = 0;
inline constexpr int kMostRestartMcus = 65535;  // 16 bits

// Returns the best number of MCUs between restart markers for most crops of an image with the given number of pixels,
// or nullopt if markers cost more than they save. docs/pack.md has the measurements.
std::optional<int> restart_interval_for(int width, int height);

// interval: the number of MCUs between markers, from 1 to kMostRestartMcus, or kRestartIntervalBySize. Returns nullopt
// if the image should not be changed, because it is not a JPEG, is too small for kRestartIntervalBySize, or is of a
// kind for which markers have no effect (progressive, arithmetic, multi-scan, CMYK, unusual sampling). kData: pixels
// are missing or damaged. The header and the bytes after the image are copied unchanged, except for the restart
// interval and any Huffman tables that lack a code that the markers need; these tables are rebuilt.
Result<std::optional<std::vector<std::byte>>> with_restarts(std::span<const std::byte> encoded, int interval);

}  // namespace feedline::decode
