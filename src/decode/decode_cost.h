// SPDX-License-Identifier: Apache-2.0
#pragma once

// Estimates the cost of decoding regions of an image, to choose between ways of producing the same pixels. The unit is
// one nanosecond on the machine used for calibration; only ratios are meaningful.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "feedline/operation.h"

namespace feedline::decode {

// Every codec reads all stored bytes up to the region's last row, does some work for every pixel of those rows, and
// more for pixels inside the region. Other costs are negligible. Measured with bench/view_regions.cpp; accurate to 5 %
// on average.
struct DecodeCosts {
  double byte;   // per byte of the file that is read
  double above;  // per pixel from the first row to the region's last one
  double pixel;  // per pixel of the region
};

// The cost of one region of an image whose encoded size is given in bytes. Requires: the header has a format.
double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region);

// The smallest box around all regions. Requires: at least one.
Box bounding_box(std::span<const Box> regions);
// Whether decoding every region separately costs less than decoding their bounding box.
bool is_cheaper_apart(const ImageHeader& header, std::size_t bytes, std::span<const Box> regions);

}  // namespace feedline::decode
