// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/steps.h"

namespace feedline::transform {

// Fills `out` with step.window of `in` padded as torchvision pads PIL images: ImageOps.expand for kConstant, numpy.pad
// for the others, whose borders may be wider than the image. `map` is scratch.
Result<void> pad(memory::PixelView in, const PadStep& step, std::vector<int>& map, memory::PixelBuffer& out);

}  // namespace feedline::transform
