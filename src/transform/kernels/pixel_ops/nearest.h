// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// The nearest pixels of an affine transform, in whichever of Pillow's three ways it would take: columns found once
// where nothing turns or slants, 16.16 fixed point where that reaches, sums of doubles else. `out` has the size wanted;
// `columns` is scratch.
void affine_nearest(const memory::PixelView& in, const AffineMatrix& matrix, const Colour& fill,
                    std::vector<int>& columns, memory::PixelBuffer& out);

}  // namespace feedline::transform
