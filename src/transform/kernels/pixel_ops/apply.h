// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"
#include "transform/kernels/pixel_ops/blur.h"
#include "transform/kernels/pixel_ops/pillow_blur.h"
#include "transform/kernels/pixel_ops/warp.h"

namespace feedline::transform {

// One thread's scratch for any operation. Nothing is allocated after the largest image.
struct PixelScratch {
  WarpScratch warp;
  BlurScratch blur;
  PillowBlurScratch pillow_blur;
  AlignedVector<std::uint8_t> row;
};

// The output size for an image of this size.
Size size_after(const PixelOperation& operation, Size image);
// Returns true if apply() may write to the buffer of `in`.
bool works_in_place(const PixelOperation& operation);

// Runs the operation. kConfig: a parameter out of range, or a box that is not inside the image. Requires: 1 or 3
// channels; `out` does not share memory with `in` unless works_in_place().
Result<void> apply(const PixelOperation& operation, const memory::PixelView& in, PixelScratch& scratch,
                   memory::PixelBuffer& out);

}  // namespace feedline::transform
