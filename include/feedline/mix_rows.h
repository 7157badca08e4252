// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix on the caller's batch, with parameters that the caller has drawn. Loaders draw their own parameters:
// see LoaderOptions.

#include <cstdint>

#include "feedline/error.h"
#include "feedline/operation.h"

namespace feedline {

// float32 (rows, channels, height, width), contiguous. Modified in place.
struct ImageRows {
  float* data = nullptr;
  std::uint64_t rows = 0;
  int channels = 3;
  Size image;
};

// Mixes every row with the one before it, and the first with the last: row * share + other * (1 - share), with each
// product and the sum rounded separately, as in torch. kConfig: fewer than two rows.
Result<void> mix_up(const ImageRows& images, double share);
// Replaces the box of every row with that of the preceding row. kConfig: fewer than two rows, or a box outside the
// image.
Result<void> cut_mix(const ImageRows& images, const Box& box);

}  // namespace feedline
