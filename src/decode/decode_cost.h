// SPDX-License-Identifier: Apache-2.0
#pragma once

// What decoding regions of an image costs, to choose between ways of getting the same pixels. The unit is a nanosecond
// of the machine that it was measured on; only ratios count.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "feedline/operation.h"

namespace feedline::decode {

// Of one region of an image that is stored in so many bytes.
double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region);

// The smallest box around all regions. Requires: at least one.
Box bounding_box(std::span<const Box> regions);
// Does decoding every region by itself cost less than their bounding box?
bool is_cheaper_apart(const ImageHeader& header, std::size_t bytes, std::span<const Box> regions);

}  // namespace feedline::decode
