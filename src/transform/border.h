// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/steps.h"

namespace feedline::transform {

// Fills `out` with step.window of the padded `in`, as torchvision pads PIL images: with ImageOps.expand for kConstant
// and numpy.pad for the other modes, whose borders may be wider than the image. `map` is scratch.
Result<void> pad(memory::PixelView in, const PadStep& step, std::vector<int>& map, memory::PixelBuffer& out);

}  // namespace feedline::transform
