// SPDX-License-Identifier: Apache-2.0
#pragma once

// MixUp and CutMix for a batch in the caller's memory, with the caller's parameters. For batches from loaders, see
// LoaderOptions.

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

// Mixes every row with the preceding row, and the first with the last: row * share + other * (1 - share). As in torch,
// each product and the sum are rounded separately. Fails with kConfig if there are fewer than two rows.
Result<void> mix_up(const ImageRows& images, double share);
// Replaces the pixels of `box` in every row with those of the preceding row. Fails with kConfig if there are fewer than
// two rows or the box is outside the image.
Result<void> cut_mix(const ImageRows& images, const Box& box);

}  // namespace feedline
