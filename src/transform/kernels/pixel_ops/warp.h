// SPDX-License-Identifier: Apache-2.0
#pragma once

// Image.transform and Image.rotate with Pillow's bytes, `fill` where the source has no pixel. Nearest, bilinear and
// bicubic; nearest of an affine transform in the three ways that Pillow has. `out` is not the memory of `in`.
// Thread-safe.

#include <vector>

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Scratch of one thread.
struct WarpScratch {
  std::vector<double> xs, ys;  // places of a row
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
