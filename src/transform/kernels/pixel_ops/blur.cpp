// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/blur.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "transform/kernels/border_source.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

// Computes torchvision's window: the samples of sizes 3 and 5 are at +-0.707 and +-1.414 for any sigma.
void compute_weights(int size, double sigma, std::vector<float>& weights) {
  FEEDLINE_CHECK(size > 0 && size % 2 == 1 && sigma > 0);
  const int radius = size / 2;
  weights.resize(static_cast<std::size_t>(radius) + 1);
  const auto height = [&](int i) {
    const double point = i / std::sqrt(2.0) / sigma;
    return std::exp(-point * point);
  };
  double sum = height(0);
  for (int i = 1; i <= radius; ++i) sum += 2 * height(i);
  for (int i = 0; i <= radius; ++i) weights[static_cast<std::size_t>(i)] = static_cast<float>(height(i) / sum);
}

// Converts a row to float, with `radius` reflected pixels on both sides.
void border_row(const std::uint8_t* row, const memory::PixelView& in, int radius, const PixelKernels& kernels,
                float* out) {
  float* const middle = out + radius * in.channels;
  kernels.to_float(row, static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.channels), middle);
  const auto reflect = [&](int x) {
    const int source = border_source(x, in.width, PaddingMode::kReflect);
    std::copy_n(middle + source * in.channels, in.channels, middle + x * in.channels);
  };
  for (int i = 1; i <= radius; ++i) {
    reflect(-i);
    reflect(in.width - 1 + i);
  }
}

std::size_t cache_line(std::size_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

Result<void> gaussian_blur(const memory::PixelView& in, const pixel_op::GaussianBlur& blur, BlurScratch& scratch,
                           memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  FEEDLINE_CHECK(out.row(0) != in.data);
  compute_weights(blur.kernel_size[0], blur.sigma[0], scratch.weights_x);
  compute_weights(blur.kernel_size[1], blur.sigma[1], scratch.weights_y);
  const int radius_x = blur.kernel_size[0] / 2, radius_y = blur.kernel_size[1] / 2;
  const int ring_rows = 2 * radius_y + 1;
  const auto count = static_cast<std::size_t>(in.width * in.channels);
  const std::size_t pitch = cache_line(count);
  scratch.bordered.resize(count + static_cast<std::size_t>(2 * radius_x * in.channels));
  scratch.ring.resize(pitch * static_cast<std::size_t>(ring_rows));
  scratch.rows.resize(static_cast<std::size_t>(ring_rows));
  const auto slot = [&](int y) { return scratch.ring.data() + static_cast<std::size_t>(y % ring_rows) * pitch; };
  const PixelKernels& kernels = *active_kernels().pixels;

  int made = 0;
  for (int y = 0; y < in.height; ++y) {
    for (; made < std::min(in.height, y + radius_y + 1); ++made) {
      border_row(in.row(made), in, radius_x, kernels, scratch.bordered.data());
      kernels.blur_row(scratch.bordered.data() + radius_x * in.channels, scratch.weights_x.data(), radius_x,
                       in.channels, count, slot(made));
    }
    for (int i = 0; i < ring_rows; ++i)
      scratch.rows[static_cast<std::size_t>(i)] =
          slot(border_source(y - radius_y + i, in.height, PaddingMode::kReflect));
    kernels.blur_rows(scratch.rows.data(), scratch.weights_y.data(), radius_y, count, out.row(y));
  }
  return {};
}

}  // namespace feedline::transform
