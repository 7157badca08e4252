// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/elastic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {
namespace {

// Returns the nearest pixel to a position, with halves rounded to even; -1 if the position is outside or NaN.
int nearest_pixel(float point, int size) {
  const float whole = std::nearbyint(point);
  return whole >= 0 && whole < static_cast<float>(size) ? static_cast<int>(whole) : -1;
}

template <int kChannels>
void nearest_pixel(const memory::PixelView& in, float x, float y, const Colour& fill, std::uint8_t* out) {
  const int column = nearest_pixel(x, in.width), row = nearest_pixel(y, in.height);
  std::memcpy(out, column >= 0 && row >= 0 ? in.row(row) + column * kChannels : fill.data(), kChannels);
}

constexpr int kPoints = 256;  // positions per call

// Calls f(xs, ys, count, out) for all positions of the image in pixels; each call has part of a row.
template <typename F>
void each_places(const memory::PixelView& in, std::span<const float> displacement, memory::PixelBuffer& out, F f) {
  float xs[kPoints], ys[kPoints];
  const float* dx = displacement.data();
  const float* dy = dx + displacement.size() / 2;
  for (int y = 0; y < in.height; ++y) {
    const float row = grid_coordinate(y, in.height);
    for (int first = 0; first < in.width; first += kPoints) {
      const int count = std::min(kPoints, in.width - first);
      for (int i = 0; i < count; ++i) {
        xs[i] = pixel_coordinate(grid_coordinate(first + i, in.width) + *dx++, in.width);
        ys[i] = pixel_coordinate(row + *dy++, in.height);
      }
      f(xs, ys, count, out.row(y) + first * in.channels);
    }
  }
}

template <int kChannels>
void nearest_pixels(const memory::PixelView& in, const float* xs, const float* ys, int count, const Colour& fill,
                    std::uint8_t* out) {
  for (int i = 0; i < count; ++i) nearest_pixel<kChannels>(in, xs[i], ys[i], fill, out + i * kChannels);
}

}  // namespace

Result<void> elastic(const memory::PixelView& in, const pixel_op::Elastic& elastic, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, in.channels));
  FEEDLINE_CHECK(out.row(0) != in.data);
  const bool nearest = elastic.interpolation == Interpolation::kNearest;
  const PixelKernels& kernels = *active_kernels().pixels;
  const auto sample = elastic.interpolation == Interpolation::kBicubic ? kernels.grid_cubic : kernels.grid;
  each_places(in, elastic.displacement, out, [&](const float* xs, const float* ys, int count, std::uint8_t* to) {
    if (!nearest) return sample(in, xs, ys, count, elastic.fill.data(), to);
    in.channels == 3 ? nearest_pixels<3>(in, xs, ys, count, elastic.fill, to)
                     : nearest_pixels<1>(in, xs, ys, count, elastic.fill, to);
  });
  return {};
}

}  // namespace feedline::transform
