// SPDX-License-Identifier: Apache-2.0
#pragma once

// Brightness, contrast, saturation, sharpness (Pillow's ImageEnhance) and hue (torchvision's adjust_hue for PIL
// images), byte for byte. `out` gets the size of `in`. `out` may be the buffer of `in`, except in adjust_sharpness().
// Thread-safe.

#include <cstdint>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

Result<void> adjust_brightness(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
Result<void> adjust_contrast(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
// Images with one channel are not changed, as in Pillow and torchvision.
Result<void> adjust_saturation(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
Result<void> adjust_hue(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
std::uint8_t hue_shift(double factor);  // the value added to the hue byte
// `row` is scratch.
Result<void> adjust_sharpness(const memory::PixelView& in, double factor, AlignedVector<std::uint8_t>& row,
                              memory::PixelBuffer& out);

// Copies the image unless `out` is the buffer of `in`.
Result<void> copy(const memory::PixelView& in, memory::PixelBuffer& out);

}  // namespace feedline::transform
