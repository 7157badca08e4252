// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a JPEG again with restart markers, without loss: the same coefficients and the same header, so the same
// pixels. A region is then decoded from the intervals that it touches alone.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "feedline/error.h"

namespace feedline::decode {

inline constexpr int kRestartIntervalBySize = 0;
inline constexpr int kMostRestartMcus = 65535;  // 16 bits

// MCUs between restart markers that suit most crops of an image of so many pixels; nothing where markers cost more than
// they save. docs/packing.md has the measurements.
std::optional<int> restart_interval_for(int width, int height);

// `interval`: MCUs between markers, 1 to kMostRestartMcus, or kRestartIntervalBySize. Nothing where the image stays as
// it is: no JPEG, too small for the size's interval, or of a kind that gains nothing (progressive, arithmetic, of
// several scans, CMYK, unusual sampling). kData where pixels are missing or damaged. All of the header, and what
// follows the image, is kept byte for byte, but for the restart interval itself; and for the Huffman tables where these
// lack a code that the markers need: then they are made for the image.
Result<std::optional<std::vector<std::byte>>> with_restarts(std::span<const std::byte> encoded, int interval);

}  // namespace feedline::decode
