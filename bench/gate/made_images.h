// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images generated with integer arithmetic, the same on every machine.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace feedline::gate {

using Bytes = std::vector<std::byte>;

// RGB with gradients, edges and noise, which compresses about as well as a photo.
std::vector<std::uint8_t> made_photo(int width, int height);
// 4:2:0 at quality 90, baseline with the standard Huffman tables or progressive.
Bytes made_jpeg(int width, int height, bool progressive);
Bytes made_png(int width, int height);

}  // namespace feedline::gate
