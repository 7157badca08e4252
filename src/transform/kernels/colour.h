// SPDX-License-Identifier: Apache-2.0
#pragma once

// Colour operations whose results equal Pillow's 8-bit results.

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/augment/sampling.h"

namespace feedline::transform {

// Like Image.convert("L"), with `channels` equal channels.
Result<void> grayscale(memory::PixelView in, int channels, memory::PixelBuffer& out);

// Applies torchvision's adjust_* functions in the drawn order. For images with one channel, saturation and hue have no
// effect, as in torchvision.
Result<void> jitter(memory::PixelBuffer& image, const JitterDrawing& drawing);

}  // namespace feedline::transform
