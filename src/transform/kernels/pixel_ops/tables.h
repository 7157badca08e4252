// SPDX-License-Identifier: Apache-2.0
#pragma once

// Operations that map each byte independently; the results equal those of Pillow's ImageOps. `out` gets the size of
// `in`, and may be the buffer of `in`. Thread-safe.

#include "feedline/error.h"
#include "memory/pixels.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"

namespace feedline::transform {

Result<void> autocontrast(const memory::PixelView& in, memory::PixelBuffer& out);
Result<void> equalize(const memory::PixelView& in, memory::PixelBuffer& out);
Result<void> invert(const memory::PixelView& in, memory::PixelBuffer& out);
Result<void> posterize(const memory::PixelView& in, int bits, memory::PixelBuffer& out);  // Requires: 0 to 8
Result<void> solarize(const memory::PixelView& in, double threshold, memory::PixelBuffer& out);
Result<void> solarize_add(const memory::PixelView& in, int add, int threshold, memory::PixelBuffer& out);

// out = table[in], with the same table for all channels.
Result<void> look_up(const memory::PixelView& in, const ByteTable& table, memory::PixelBuffer& out);

}  // namespace feedline::transform
