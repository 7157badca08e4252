// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision v2's elastic: torch's grid_sample with coordinates from -1 to 1, in float32. Thread-safe.

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Row or column i of an identity grid of `size`, computed from both ends as in torch.linspace.
inline float grid_place(int i, int size) {
  const float end = static_cast<float>(size - 1) / static_cast<float>(size);
  if (size == 1) return -end;
  const float step = (end + end) / static_cast<float>(size - 1);
  return i < size / 2 ? -end + step * static_cast<float>(i) : end - step * static_cast<float>(size - 1 - i);
}

// Converts a grid coordinate to pixels, whose centres are whole numbers. Rounds once, like torch's vectorised
// multiply-add: a double holds the exact product.
inline float pixel_place(float place, int size) {
  const float beside = place + 1;
  return static_cast<float>(static_cast<double>(beside) * (0.5 * size) - 0.5);
}

// Requires: a displacement for each pixel; nearest, bilinear or bicubic; `out` does not share memory with `in`.
Result<void> elastic(const memory::PixelView& in, const pixel_op::Elastic& elastic, memory::PixelBuffer& out);

}  // namespace feedline::transform
