// SPDX-License-Identifier: Apache-2.0
#pragma once

// Estimates the cost of decoding regions of an image, to choose between ways of producing the same pixels. The unit is
// one nanosecond on the machine used for calibration; only ratios are meaningful.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "feedline/operation.h"

namespace feedline::decode {

// The cost of one region of an image whose encoded size is given in bytes.
double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region);

// The smallest box around all regions. Requires: at least one.
Box bounding_box(std::span<const Box> regions);
// Whether decoding every region separately costs less than decoding their bounding box.
bool is_cheaper_apart(const ImageHeader& header, std::size_t bytes, std::span<const Box> regions);

}  // namespace feedline::decode
