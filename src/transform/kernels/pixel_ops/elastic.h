// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision v2's elastic: torch's grid_sample of an image between -1 and 1, in float32. Thread-safe.

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Row or column i of an identity grid of `size`, as torch.linspace counts, from both ends.
inline float grid_place(int i, int size) {
  const float end = static_cast<float>(size - 1) / static_cast<float>(size);
  if (size == 1) return -end;
  const float step = (end + end) / static_cast<float>(size - 1);
  return i < size / 2 ? -end + step * static_cast<float>(i) : end - step * static_cast<float>(size - 1 - i);
}

// A place of a grid in pixels, whose middles are whole numbers. Rounded once, as torch's vectors multiply and add: a
// double holds the product.
inline float pixel_place(float place, int size) {
  const float beside = place + 1;
  return static_cast<float>(static_cast<double>(beside) * (0.5 * size) - 0.5);
}

// Requires: a displacement for each pixel; nearest, bilinear or bicubic; `out` is not the memory of `in`.
Result<void> elastic(const memory::PixelView& in, const pixel_op::Elastic& elastic, memory::PixelBuffer& out);

}  // namespace feedline::transform
