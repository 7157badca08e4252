// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image.transform and Image.rotate, with the same bytes as Pillow, and `fill` outside the source. Supports nearest,
// bilinear and bicubic interpolation; nearest affine transforms use Pillow's three methods. `out` must not share memory
// with `in`. Thread-safe.

#include <vector>

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// One thread's scratch.
struct WarpScratch {
  std::vector<double> xs, ys;  // positions of a row
  std::vector<int> columns;
};

// Requires: the interpolation is not kBox.
Result<void> warp_affine(const memory::PixelView& in, const pixel_op::Affine& affine, WarpScratch& scratch,
                         memory::PixelBuffer& out);
Result<void> warp_perspective(const memory::PixelView& in, const pixel_op::Perspective& perspective,
                              WarpScratch& scratch, memory::PixelBuffer& out);
Result<void> rotate(const memory::PixelView& in, const pixel_op::Rotate& rotation, WarpScratch& scratch,
                    memory::PixelBuffer& out);

}  // namespace feedline::transform
