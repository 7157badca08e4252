// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/steps.h"

namespace feedline::transform {

// Fills `out` with the part step.window of the padded image `in`. Pads as torchvision pads PIL images: with
// ImageOps.expand for kConstant, and with numpy.pad for other modes, whose borders may be wider than the image. `map`
// is scratch.
Result<void> pad(memory::PixelView in, const PadStep& step, std::vector<int>& map, memory::PixelBuffer& out);

}  // namespace feedline::transform
