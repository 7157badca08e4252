// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "feedline/pixel_operation.h"
#include "memory/pixels.h"

namespace feedline::transform {

// Fills a box inside the image with a colour or with given bytes. Thread-safe.
void erase(const pixel_op::Erase& erase, memory::PixelBuffer& image);

}  // namespace feedline::transform
