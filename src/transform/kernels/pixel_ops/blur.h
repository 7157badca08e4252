// SPDX-License-Identifier: Apache-2.0
#pragma once

// torchvision v2's gaussian_blur: two passes in float32 with reflected borders (reflected repeatedly if the kernel is
// wider than the image), and the result is rounded half to even. `out` must not share memory with `in`. Thread-safe.

#include <vector>

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

// The scratch memory of one thread: the horizontally blurred rows that an output row needs.
struct BlurScratch {
  std::vector<float> weights_x, weights_y;  // from the middle outwards
  AlignedVector<float> bordered;            // a row with its reflected border
  AlignedVector<float> ring;
  std::vector<const float*> rows;
};

// Requires: the kernel sizes are odd, and sigma is above 0.
Result<void> gaussian_blur(const memory::PixelView& in, const pixel_op::GaussianBlur& blur, BlurScratch& scratch,
                           memory::PixelBuffer& out);

}  // namespace feedline::transform
