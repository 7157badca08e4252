// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images that are made, with integers alone, so that every machine makes the same ones.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace feedline::gate {

using Bytes = std::vector<std::byte>;

// RGB: slopes, edges and grain, so that it compresses about as a photo does.
std::vector<std::uint8_t> made_photo(int width, int height);
// 4:2:0 at quality 90, baseline with the standard Huffman tables or progressive.
Bytes made_jpeg(int width, int height, bool progressive);
Bytes made_png(int width, int height);

}  // namespace feedline::gate
