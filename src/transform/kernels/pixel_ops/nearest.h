// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Copies the nearest pixels of an affine transform, choosing among three methods as Pillow does: columns computed once
// if there is no rotation or shear, 16.16 fixed point if the image is small enough, otherwise sums of doubles. `out`
// has the output size; `columns` is scratch memory.
void affine_nearest(const memory::PixelView& in, const AffineMatrix& matrix, const Colour& fill,
                    std::vector<int>& columns, memory::PixelBuffer& out);

}  // namespace feedline::transform
