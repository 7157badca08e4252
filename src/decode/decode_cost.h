// SPDX-License-Identifier: Apache-2.0
#pragma once

// Estimates the cost of decoding regions of an image, to choose between ways of producing the same pixels. The unit is
// one nanosecond on the machine used for calibration; only ratios are meaningful.

#include <cstddef>
#include <span>

#include "decode/decoder.h"
#include "feedline/operation.h"

namespace feedline::decode {

// Every codec reads all encoded bytes up to the region's last row, does some work for every pixel of those rows, and
// more for pixels inside the region. Other costs are negligible. The values were measured with
// bench/images/view_regions.cpp, and are accurate to 5 % on average.
struct DecodeCosts {
  double byte;   // per byte of the file that is read
  double above;  // per pixel from the first row to the region's last one
  double pixel;  // per pixel of the region
};

// Returns the cost of decoding one region. bytes: the encoded size of the image. Requires: the header has a format.
double decode_cost(const ImageHeader& header, std::size_t bytes, const Box& region);

// Returns the smallest box that contains all regions. Requires: `regions` is not empty.
Box bounding_box(std::span<const Box> regions);
// Returns whether decoding every region separately costs less than decoding their bounding box.
bool is_cheaper_apart(const ImageHeader& header, std::size_t bytes, std::span<const Box> regions);

}  // namespace feedline::decode
