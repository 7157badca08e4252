// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/colour.h"

#include <algorithm>

#include "transform/kernels/pixel_ops/enhance.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {

Result<void> grayscale(memory::PixelView in, int channels, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, channels));
  const auto width = static_cast<std::size_t>(in.width);
  const PixelKernels& kernels = *active_kernels().pixels;
  for (int y = 0; y < in.height; ++y) {
    std::uint8_t* const to = out.row(y);
    if (in.channels == 3) {
      kernels.luma(in.row(y), width, to);
    } else {
      std::copy_n(in.row(y), width, to);
    }
    for (std::size_t x = width; channels == 3 && x-- > 0;) to[x * 3] = to[x * 3 + 1] = to[x * 3 + 2] = to[x];
  }
  return {};
}

Result<void> jitter(memory::PixelBuffer& image, const JitterDrawing& drawing) {
  for (const int which : drawing.order) {
    const memory::PixelView in = image.view();
    if (which == 0 && drawing.brightness) FEEDLINE_CHECK_OK(adjust_brightness(in, *drawing.brightness, image));
    if (which == 1 && drawing.contrast) FEEDLINE_CHECK_OK(adjust_contrast(in, *drawing.contrast, image));
    if (which == 2 && drawing.saturation) FEEDLINE_CHECK_OK(adjust_saturation(in, *drawing.saturation, image));
    if (which == 3 && drawing.hue) FEEDLINE_CHECK_OK(adjust_hue(in, *drawing.hue, image));
  }
  return {};
}

}  // namespace feedline::transform
