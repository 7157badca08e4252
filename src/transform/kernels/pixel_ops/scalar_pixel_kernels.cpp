// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <tuple>

#include "transform/kernels/pixel_ops/hsv.h"
#include "transform/kernels/pixel_ops/normals.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pixel_ops/sampled_pixel.h"

// For bit-exact results, the types and the order of operations match Pillow's Blend.c, Convert.c, Filter.c and
// Geometry.c.

namespace feedline::transform {
namespace {

void look_up(const memory::PixelView& in, const ByteTable& table, std::uint8_t* out, std::size_t stride) {
  const int count = in.width * in.channels;
  for (int y = 0; y < in.height; ++y, out += stride)
    for (int i = 0; i < count; ++i) out[i] = table[in.row(y)[i]];
}

void look_up_rgb(const memory::PixelView& in, const ByteTable* tables, std::uint8_t* out, std::size_t stride) {
  const int count = 3 * in.width;
  for (int y = 0; y < in.height; ++y, out += stride)
    for (int i = 0; i < count; ++i) out[i] = tables[i % 3][in.row(y)[i]];
}

void fold(const std::uint8_t* in, std::size_t count, std::uint8_t threshold, std::uint8_t flip, std::uint8_t mask,
          std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>((in[i] >= threshold ? in[i] ^ flip : in[i]) & mask);
}

void widen_rgb(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) {
  for (std::size_t i = 0; i < pixels; ++i)
    for (int c = 0; c < 3; ++c, ++in) {
      ranges.low[c] = std::min(ranges.low[c], *in);
      ranges.high[c] = std::max(ranges.high[c], *in);
    }
}

std::uint8_t luma_of(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void luma(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* out) {
  for (std::size_t i = 0; i < pixels; ++i) out[i] = luma_of(rgb + i * 3);
}

std::uint64_t sum_luma(const std::uint8_t* rgb, std::size_t pixels) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < pixels; ++i) sum += luma_of(rgb + i * 3);
  return sum;
}

std::uint8_t blended(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return value <= 0.0f ? 0 : value >= 255.0f ? 255 : static_cast<std::uint8_t>(value);
}

void blend(const std::uint8_t* from, const std::uint8_t* to, std::size_t count, float factor, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = blended(from[i], to[i], factor);
}

void saturate(const std::uint8_t* rgb, std::size_t pixels, float factor, std::uint8_t* out) {
  for (std::size_t i = 0; i < pixels; ++i, rgb += 3) {
    const int grey = luma_of(rgb);
    for (int c = 0; c < 3; ++c) *out++ = blended(grey, rgb[c], factor);
  }
}

void shift_hue(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) {
  static const HueTable hues;
  for (std::size_t i = 0; i < pixels; ++i, rgb += 3, out += 3) {
    Hsv hsv = to_hsv(rgb);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + shift);
    to_rgb(hsv, hues, out);
  }
}

// Pillow adds float products with 1/13 and 5/13, adds a half and truncates. The sum is an odd number of 26ths, so far
// from a whole number that the order of roundings has no effect.
void smooth(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) {
  for (int i = channels; i < (width - 1) * channels; ++i) {
    int sum = 4 * rows[1][i] + 6;
    for (int row = 0; row < 3; ++row) sum += rows[row][i - channels] + rows[row][i] + rows[row][i + channels];
    out[i] = static_cast<std::uint8_t>(sum / 13);
  }
}

void to_float(const std::uint8_t* in, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
}

void blur_row(const float* in, const float* weights, int radius, int step, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const float* const middle = in + i;
    float sum = weights[0] * *middle;
    for (std::ptrdiff_t j = 1; j <= radius; ++j) sum += weights[j] * (middle[-j * step] + middle[j * step]);
    out[i] = sum;
  }
}

void blur_rows(const float* const* rows, const float* weights, int radius, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = weights[0] * rows[radius][i];
    for (int j = 1; j <= radius; ++j) sum += weights[j] * (rows[radius - j][i] + rows[radius + j][i]);
    out[i] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(sum), 0.0f, 255.0f));
  }
}

void make_normals(const base::Random::Blocks& blocks, std::size_t groups, float* out) {
  auto counter = blocks.counter;
  for (std::size_t group = 0; group < groups; ++group, out += kGroupNormals)
    for (std::size_t block = 0; block < kGroupBlocks; ++block, ++counter[0]) {
      const auto words = base::philox4x32(counter, blocks.key);
      float* const to = out + block;
      std::tie(to[0], to[kGroupBlocks]) = normals::of_words(words[0], words[1]);
      std::tie(to[2 * kGroupBlocks], to[3 * kGroupBlocks]) = normals::of_words(words[2], words[3]);
    }
}

void weigh(const std::uint8_t* in, std::size_t count, float weight, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = weight * in[i];
}

void add_weighed(const std::uint8_t* in, std::size_t count, float weight, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = out[i] + weight * in[i];
}

void truncate(const float* in, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(std::clamp(in[i], 0.0f, 255.0f));
}

void affine_points(const double* matrix, int y, int count, double* xs, double* ys) {
  const double row = y + 0.5;
  for (int x = 0; x < count; ++x) {
    const double column = x + 0.5;
    xs[x] = matrix[0] * column + matrix[1] * row + matrix[2];
    ys[x] = matrix[3] * column + matrix[4] * row + matrix[5];
  }
}

void perspective_points(const double* coefficients, int y, int count, double* xs, double* ys) {
  const double* const a = coefficients;
  const double row = y + 0.5;
  for (int x = 0; x < count; ++x) {
    const double column = x + 0.5;
    const double below = a[6] * column + a[7] * row + 1;
    xs[x] = (a[0] * column + a[1] * row + a[2]) / below;
    ys[x] = (a[3] * column + a[4] * row + a[5]) / below;
  }
}

template <auto kRgb, auto kGrey, typename Point>
void sample(const memory::PixelView& in, const Point* xs, const Point* ys, int count, const std::uint8_t* fill,
            std::uint8_t* out) {
  if (in.channels == 3) {
    for (int x = 0; x < count; ++x) kRgb(in, xs[x], ys[x], fill, out + 3 * x);
  } else {
    for (int x = 0; x < count; ++x) kGrey(in, xs[x], ys[x], fill, out + x);
  }
}

}  // namespace

const PixelKernels kScalarPixelKernels = {
    .look_up = look_up,
    .look_up_rgb = look_up_rgb,
    .fold = fold,
    .widen_rgb = widen_rgb,
    .luma = luma,
    .sum_luma = sum_luma,
    .blend = blend,
    .saturate = saturate,
    .shift_hue = shift_hue,
    .smooth = smooth,
    .to_float = to_float,
    .blur_row = blur_row,
    .blur_rows = blur_rows,
    .normals = make_normals,
    .weigh = weigh,
    .add_weighed = add_weighed,
    .truncate = truncate,
    .affine_points = affine_points,
    .perspective_points = perspective_points,
    .bilinear = sample<bilinear_pixel<3>, bilinear_pixel<1>>,
    .bicubic = sample<bicubic_pixel<3>, bicubic_pixel<1>>,
    .grid = sample<grid_pixel<3>, grid_pixel<1>>,
    .grid_cubic = sample<grid_cubic_pixel<3>, grid_cubic_pixel<1>>,
};

}  // namespace feedline::transform
