// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pixel_ops/pillow_blur.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "transform/kernels/pixel_ops/enhance.h"

namespace feedline::transform {
namespace {

using memory::PixelBuffer;
using memory::PixelView;

constexpr int kPasses = 3;  // in each direction, as in ImageFilter

// The sum of 2 * radius + 1 bytes times `weight`, plus the two bytes next to them times `far`. The weights sum to 2^24.
struct Box1D {
  int radius = 0;
  std::uint32_t weight = 0, far = 0;
};

// Computes in single precision wherever Pillow does, because the weights depend on the last bits.
Box1D box_of(double blur_radius) {
  const auto sigma = static_cast<float>(blur_radius);
  const float variance = sigma * sigma / static_cast<float>(kPasses);
  const auto length = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((length - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  const float radius = whole + part;

  constexpr std::uint32_t kOne = 1u << 24;
  Box1D box{.radius = static_cast<int>(radius)};
  box.weight = static_cast<std::uint32_t>(static_cast<float>(kOne) / (radius * 2 + 1));
  box.far = (kOne - (2 * static_cast<std::uint32_t>(box.radius) + 1) * box.weight) / 2;
  return box;
}

std::uint8_t weighed(const Box1D& box, std::uint32_t sum, std::uint32_t far) {
  return static_cast<std::uint8_t>((sum * box.weight + far * box.far + (1u << 23)) >> 24);
}

// Blurs a row in place: `bordered` has room for radius + 1 pixels on both sides of the row.
void blur_along(const Box1D& box, int channels, std::size_t count, PillowBlurScratch& scratch, std::uint8_t* row) {
  const std::size_t step = static_cast<std::size_t>(channels);
  const std::size_t border = static_cast<std::size_t>(box.radius + 1) * step;
  std::uint8_t* const middle = scratch.bordered.data() + border;
  std::copy_n(row, count, middle);
  for (std::size_t i = 0; i < border; ++i) {
    scratch.bordered[i] = row[i % step];
    middle[count + i] = row[count - step + i % step];
  }
  // starts with the box of the first pixel, then adds the entering and subtracts the leaving pixels
  std::uint32_t* const sums = scratch.sums.data();
  for (std::size_t c = 0; c < step; ++c) {
    sums[c] = 0;
    for (std::size_t i = 1; i < static_cast<std::size_t>(2 * box.radius + 2); ++i)
      sums[c] += scratch.bordered[i * step + c];
  }
  const std::uint8_t *const in = middle + static_cast<std::size_t>(box.radius) * step, *const gone =
                                                                                           in - 2 * border + step;
  for (std::size_t i = step; i < count; ++i) sums[i] = sums[i - step] + in[i] - gone[i];
  const std::uint8_t *const left = scratch.bordered.data(), *const right = left + 2 * border;
  for (std::size_t i = 0; i < count; ++i) row[i] = weighed(box, sums[i], std::uint32_t{left[i]} + right[i]);
}

// Blurs columns, row by row.
void blur_across(const Box1D& box, const PixelView& in, std::size_t count, PillowBlurScratch& scratch,
                 PixelBuffer& out) {
  const auto row = [&](int y) { return in.row(std::clamp(y, 0, in.height - 1)); };
  std::uint32_t* const sums = scratch.sums.data();
  std::fill_n(sums, count, 0u);
  for (int y = -box.radius; y <= box.radius; ++y)
    for (std::size_t i = 0; i < count; ++i) sums[i] += row(y)[i];
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t *const above = row(y - box.radius - 1), *const below = row(y + box.radius + 1);
    std::uint8_t* const made = out.row(y);
    for (std::size_t i = 0; i < count; ++i) made[i] = weighed(box, sums[i], std::uint32_t{above[i]} + below[i]);
    const std::uint8_t* const gone = row(y - box.radius);
    for (std::size_t i = 0; i < count; ++i) sums[i] += std::uint32_t{below[i]} - gone[i];
  }
}

}  // namespace

Result<void> pillow_blur(const PixelView& in, double radius, PillowBlurScratch& scratch, PixelBuffer& out) {
  FEEDLINE_CHECK_OK(copy(in, out));
  FEEDLINE_CHECK(out.row(0) != in.data);
  const Box1D box = box_of(radius);
  if (radius == 0) return {};
  const std::size_t count = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.channels);
  scratch.bordered.resize(count + 2 * static_cast<std::size_t>(box.radius + 1) * static_cast<std::size_t>(in.channels));
  scratch.sums.resize(count);
  for (int y = 0; y < in.height; ++y)
    for (int pass = 0; pass < kPasses; ++pass) blur_along(box, in.channels, count, scratch, out.row(y));
  FEEDLINE_CHECK_OK(scratch.other.resize(in.width, in.height, in.channels));
  for (int pass = 0; pass < kPasses; ++pass) {
    blur_across(box, out.view(), count, scratch, scratch.other);
    std::swap(out, scratch.other);
  }
  return {};
}

}  // namespace feedline::transform
