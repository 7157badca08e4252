// SPDX-License-Identifier: Apache-2.0
#pragma once

// Interpolates one pixel at a position. Like Pillow's Geometry.c: in double, in Pillow's order of operations, with
// border pixels repeated outside. Like torch's grid_sample: in float, with whole numbers at the centres of pixels, and
// zeros outside. The vector kernels call these functions at the edges of the image.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "memory/pixels.h"

namespace feedline::transform {

// NaN counts as inside, because Pillow tests whether a position is outside; the value that is read becomes 0.
inline bool is_outside(const memory::PixelView& in, double x, double y) {
  return x < 0.0 || x >= in.width || y < 0.0 || y >= in.height;
}

struct Between {
  int first;    // the pixel at or before the position; -1: before the first
  double rest;  // the distance from it

  explicit Between(double point) {
    point -= 0.5;
    first = static_cast<int>(std::floor(point));
    rest = point - first;
  }
};

inline double lerp(double a, double b, double rest) { return a + (b - a) * rest; }

inline double cubic(double a, double b, double c, double d, double rest) {
  const double p2 = -a + c;
  const double p3 = 2 * (a - b) + c - d;
  const double p4 = -a + b - c + d;
  return b + rest * (p2 + rest * (p3 + rest * p4));
}

template <int kChannels>
void bilinear_pixel(const memory::PixelView& in, double x, double y, const std::uint8_t* fill, std::uint8_t* out) {
  if (is_outside(in, x, y)) {
    std::memcpy(out, fill, kChannels);
    return;
  }
  if (std::isnan(x) || std::isnan(y)) {
    std::memset(out, 0, kChannels);
    return;
  }
  const Between column(x), row(y);
  const std::uint8_t* const above = in.row(std::max(row.first, 0));
  const std::uint8_t* const below = in.row(std::min(row.first + 1, in.height - 1));
  const int left = std::max(column.first, 0) * kChannels;
  const int right = std::min(column.first + 1, in.width - 1) * kChannels;
  for (int c = 0; c < kChannels; ++c)
    out[c] = static_cast<std::uint8_t>(lerp(lerp(above[left + c], above[right + c], column.rest),
                                            lerp(below[left + c], below[right + c], column.rest), row.rest));
}

template <int kChannels>
void bicubic_pixel(const memory::PixelView& in, double x, double y, const std::uint8_t* fill, std::uint8_t* out) {
  if (is_outside(in, x, y)) {
    std::memcpy(out, fill, kChannels);
    return;
  }
  if (std::isnan(x) || std::isnan(y)) {
    std::memset(out, 0, kChannels);
    return;
  }
  const Between column(x), row(y);
  int points[4];
  const std::uint8_t* rows[4];
  for (int i = 0; i < 4; ++i) {
    points[i] = std::clamp(column.first - 1 + i, 0, in.width - 1) * kChannels;
    rows[i] = in.row(std::clamp(row.first - 1 + i, 0, in.height - 1));
  }
  for (int c = 0; c < kChannels; ++c) {
    const auto along = [&](const std::uint8_t* pixels) {
      return cubic(pixels[points[0] + c], pixels[points[1] + c], pixels[points[2] + c], pixels[points[3] + c],
                   column.rest);
    };
    const double value = cubic(along(rows[0]), along(rows[1]), along(rows[2]), along(rows[3]), row.rest);
    out[c] = value <= 0.0 ? 0 : value >= 255.0 ? 255 : static_cast<std::uint8_t>(value);
  }
}

// torchvision treats pixels outside the image as 0, and then blends with `fill` in proportion to the part of the pixel
// that is outside.
template <int kChannels>
void grid_pixel(const memory::PixelView& in, float x, float y, const std::uint8_t* fill, std::uint8_t* out) {
  const bool touches = x > -1 && y > -1 && x < static_cast<float>(in.width) && y < static_cast<float>(in.height);
  if (!touches) {
    std::memcpy(out, fill, kChannels);
    return;
  }
  const float left = std::floor(x), top = std::floor(y);
  const int column = static_cast<int>(left), row = static_cast<int>(top);
  const float east = x - left, south = y - top, west = 1 - east, north = 1 - south;
  float sums[kChannels] = {}, inside = 0;
  const auto add = [&](int dx, int dy, float weight) {
    const int from_x = column + dx, from_y = row + dy;
    if (from_x < 0 || from_x >= in.width || from_y < 0 || from_y >= in.height) return;
    const std::uint8_t* const pixel = in.row(from_y) + from_x * kChannels;
    for (int c = 0; c < kChannels; ++c) sums[c] += static_cast<float>(pixel[c]) * weight;
    inside += weight;
  };
  add(0, 0, north * west);
  add(1, 0, north * east);
  add(0, 1, south * west);
  add(1, 1, south * east);
  for (int c = 0; c < kChannels; ++c) {
    const auto colour = static_cast<float>(fill[c]);
    const float value = (sums[c] - colour) * inside + colour;
    out[c] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  }
}

// The weights of the four pixels around a position that is `rest` after the second pixel (Keys, with torch's A).
struct GridCubic {
  static constexpr float kA = -0.75F;
  float weights[4];

  explicit GridCubic(float rest) : weights{far(rest + 1), near(rest), near(1 - rest), far((1 - rest) + 1)} {}
  static float near(float way) { return ((kA + 2) * way - (kA + 3)) * way * way + 1; }
  static float far(float way) { return ((kA * way - 5 * kA) * way + 8 * kA) * way - 4 * kA; }
};

// Like grid_pixel(), with four by four pixels. Sums below 0 and above 255 are clamped, while torchvision wraps them.
template <int kChannels>
void grid_cubic_pixel(const memory::PixelView& in, float x, float y, const std::uint8_t* fill, std::uint8_t* out) {
  const bool touches =
      x > -2 && y > -2 && x < static_cast<float>(in.width + 1) && y < static_cast<float>(in.height + 1);
  if (!touches) {
    std::memcpy(out, fill, kChannels);
    return;
  }
  const float left = std::floor(x), top = std::floor(y);
  const int column = static_cast<int>(left) - 1, row = static_cast<int>(top) - 1;
  const GridCubic along(x - left), down(y - top);
  float sums[kChannels + 1] = {};  // the last is the part that is inside
  for (int j = 0; j < 4; ++j) {
    if (row + j < 0 || row + j >= in.height) continue;
    float row_sums[kChannels + 1] = {};
    for (int i = 0; i < 4; ++i) {
      if (column + i < 0 || column + i >= in.width) continue;
      const std::uint8_t* const pixel = in.row(row + j) + (column + i) * kChannels;
      for (int c = 0; c < kChannels; ++c) row_sums[c] += static_cast<float>(pixel[c]) * along.weights[i];
      row_sums[kChannels] += along.weights[i];
    }
    for (int c = 0; c <= kChannels; ++c) sums[c] += row_sums[c] * down.weights[j];
  }
  for (int c = 0; c < kChannels; ++c) {
    const auto colour = static_cast<float>(fill[c]);
    const float value = (sums[c] - colour) * sums[kChannels] + colour;
    out[c] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(value), 0.0F, 255.0F));
  }
}

}  // namespace feedline::transform
