// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"
#include "transform/kernels/pixel_ops/blur.h"
#include "transform/kernels/pixel_ops/pillow_blur.h"
#include "transform/kernels/pixel_ops/warp.h"

namespace feedline::transform {

// The scratch memory of one thread for all operations. After the largest image was processed, no memory is allocated.
struct PixelScratch {
  WarpScratch warp;
  BlurScratch blur;
  PillowBlurScratch pillow_blur;
  AlignedVector<std::uint8_t> row;
};

// Returns the size of the output for an image of this size.
Size size_after(const PixelOperation& operation, Size image);
// Returns whether apply() may write to the buffer of `in`.
bool works_in_place(const PixelOperation& operation);

// Runs the operation. kConfig: a parameter is out of range, or a box is not inside the image. Requires: 1 or 3
// channels, and `out` does not share memory with `in` unless works_in_place().
Result<void> apply(const PixelOperation& operation, const memory::PixelView& in, PixelScratch& scratch,
                   memory::PixelBuffer& out);

}  // namespace feedline::transform
