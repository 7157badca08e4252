// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix of a batch that the caller has, with what he drew. Loaders draw for themselves: see LoaderOptions.

#include <cstdint>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// float32 (rows, channels, height, width), one value right behind the other. Written in place.
struct ImageRows {
  float* data = nullptr;
  std::uint64_t rows = 0;
  int channels = 3;
  Size image;
};

// Every row with the one before it, the first with the last: row * share + other * (1 - share), where each product and
// the sum are rounded by themselves, as torch rounds them. kConfig: fewer than two rows.
Result<void> mix_up(const ImageRows& images, double share);
// The box of every row becomes that of the row before it. kConfig: also a box that is not within the image.
Result<void> cut_mix(const ImageRows& images, const Box& box);

}  // namespace feedline
