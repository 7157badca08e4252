// SPDX-License-Identifier: Apache-2.0
#pragma once

// Colour operations with Pillow's 8-bit results.

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/augment/sampling.h"

namespace feedline::transform {

// Image.convert("L"), into `channels` equal channels.
Result<void> grayscale(memory::PixelView in, int channels, memory::PixelBuffer& out);

// torchvision's adjust_* functions in the drawn order. On one channel saturation and hue do nothing, as in torchvision.
Result<void> jitter(memory::PixelBuffer& image, const JitterDrawing& drawing);

}  // namespace feedline::transform
