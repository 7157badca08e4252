// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision v2's elastic: torch's grid_sample in float32, with coordinates from -1 to 1. Thread-safe.

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Returns row or column i of an identity grid of `size`, computed from both ends like torch.linspace.
inline float grid_coordinate(int i, int size) {
  const float end = static_cast<float>(size - 1) / static_cast<float>(size);
  if (size == 1) return -end;
  const float step = (end + end) / static_cast<float>(size - 1);
  return i < size / 2 ? -end + step * static_cast<float>(i) : end - step * static_cast<float>(size - 1 - i);
}

// Converts a grid coordinate to pixels; centres of pixels are whole numbers. Rounds once, like torch's vectorized
// multiply-add: a double can represent the exact product.
inline float pixel_coordinate(float point, int size) {
  const float shifted = point + 1;
  return static_cast<float>(static_cast<double>(shifted) * (0.5 * size) - 0.5);
}

// Requires: a displacement for each pixel; nearest, bilinear or bicubic interpolation; and `out` does not share memory
// with `in`.
Result<void> elastic(const memory::PixelView& in, const pixel_op::Elastic& elastic, memory::PixelBuffer& out);

}  // namespace feedline::transform
