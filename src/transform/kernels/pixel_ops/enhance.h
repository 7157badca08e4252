// SPDX-License-Identifier: Apache-2.0
#pragma once

// Brightness, contrast, saturation, sharpness (Pillow's ImageEnhance) and hue (torchvision's adjust_hue for PIL
// images), with their bytes. `out` gets the size of `in`, and but for adjust_sharpness() may be the buffer that `in`
// shows. Thread-safe.

#include <cstdint>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/kernels/aligned_vector.h"

namespace feedline::transform {

Result<void> adjust_brightness(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
Result<void> adjust_contrast(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
// One channel stays as it is, as with the two.
Result<void> adjust_saturation(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
Result<void> adjust_hue(const memory::PixelView& in, double factor, memory::PixelBuffer& out);
std::uint8_t hue_shift(double factor);  // what it adds to the byte of a hue
// `row` is scratch.
Result<void> adjust_sharpness(const memory::PixelView& in, double factor, AlignedVector<std::uint8_t>& row,
                              memory::PixelBuffer& out);

// Copies, unless `out` is the buffer that `in` shows.
Result<void> copy(const memory::PixelView& in, memory::PixelBuffer& out);

}  // namespace feedline::transform
