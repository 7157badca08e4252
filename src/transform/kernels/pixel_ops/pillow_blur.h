// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pillow's ImageFilter.GaussianBlur: three box blurs along the rows and three along the columns, of bytes, whose boxes
// end between pixels (Gwosdek et al., "Theoretical Foundations of Gaussian Convolution by Extended Box Filtering",
// 2011). Pixels at the border are repeated. Thread-safe.

#include <cstdint>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

// Scratch of one thread.
struct PillowBlurScratch {
  AlignedVector<std::uint8_t> bordered;  // a row with its repeated border
  AlignedVector<std::uint32_t> sums;     // of a row's boxes
  memory::PixelBuffer other;             // what a pass along the columns makes
};

// `out` is not the memory of `in`. Requires: radius >= 0, and below 2^15.
Result<void> pillow_blur(const memory::PixelView& in, double radius, PillowBlurScratch& scratch,
                         memory::PixelBuffer& out);

}  // namespace feedline::transform
