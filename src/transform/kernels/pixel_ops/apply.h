// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"
#include "transform/kernels/pixel_ops/blur.h"
#include "transform/kernels/pixel_ops/pillow_blur.h"
#include "transform/kernels/pixel_ops/warp.h"

namespace feedline::transform {

// Scratch of one thread for any of the operations: nothing is allocated once it has seen the largest image.
struct PixelScratch {
  WarpScratch warp;
  BlurScratch blur;
  PillowBlurScratch pillow_blur;
  AlignedVector<std::uint8_t> row;
};

// What size comes out of an image of this size.
Size size_after(const PixelOperation& operation, Size image);
// May apply() write to the buffer that `in` shows?
bool works_in_place(const PixelOperation& operation);

// Carries one out. kConfig: a parameter out of range, or a box that does not lie inside the image. Requires: 1 or 3
// channels; `out` is not the memory of `in` unless works_in_place().
Result<void> apply(const PixelOperation& operation, const memory::PixelView& in, PixelScratch& scratch,
                   memory::PixelBuffer& out);

}  // namespace feedline::transform
