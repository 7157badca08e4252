// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pillow's ImageFilter.GaussianBlur: three box blurs of bytes along rows and three along columns, with fractional box
// sizes (Gwosdek et al., "Theoretical Foundations of Gaussian Convolution by Extended Box Filtering", 2011). Pixels at
// the border are repeated. Thread-safe.

#include <cstdint>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

// One thread's scratch.
struct PillowBlurScratch {
  AlignedVector<std::uint8_t> bordered;  // a row with its repeated border
  AlignedVector<std::uint32_t> sums;     // sums of a row's boxes
  memory::PixelBuffer other;             // output of a pass along the columns
};

// `out` must not share memory with `in`. Requires: 0 <= radius < 2^15.
Result<void> pillow_blur(const memory::PixelView& in, double radius, PillowBlurScratch& scratch,
                         memory::PixelBuffer& out);

}  // namespace feedline::transform
