// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "transform/kernels/kernels.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pointwise.h"

namespace feedline::transform {
namespace {

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

std::uint8_t clip(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

void plan_row(RowPlan&) {}  // the scalar kernels read the table directly

void horizontal_rgb(const std::uint8_t* in, const AxisTable& table, std::uint8_t* out) {
  for (int i = 0; i < table.count(); ++i) {
    const std::uint8_t* pixel = in + static_cast<std::ptrdiff_t>(table.first(i)) * 3;
    const std::int32_t* weights = table.weights(i);
    std::int32_t red = kHalf, green = kHalf, blue = kHalf;
    for (int t = 0; t < table.used(i); ++t, pixel += 3) {
      red += pixel[0] * weights[t];
      green += pixel[1] * weights[t];
      blue += pixel[2] * weights[t];
    }
    *out++ = clip(red);
    *out++ = clip(green);
    *out++ = clip(blue);
  }
}

void horizontal_grey(const std::uint8_t* in, const AxisTable& table, std::uint8_t* out) {
  for (int i = 0; i < table.count(); ++i) {
    const std::uint8_t* pixel = in + table.first(i);
    std::int32_t sum = kHalf;
    for (int t = 0; t < table.used(i); ++t) sum += pixel[t] * table.weights(i)[t];
    out[i] = clip(sum);
  }
}

void horizontal(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  plan.channels == 3 ? horizontal_rgb(in, *plan.table, out) : horizontal_grey(in, *plan.table, out);
}

void vertical(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
              std::uint8_t* out) {
  for (std::size_t i = 0; i < bytes; ++i) {
    std::int32_t sum = kHalf;
    for (int t = 0; t < taps; ++t) sum += rows[t][i] * weights[t];
    out[i] = clip(sum);
  }
}

void split(const std::uint8_t* in, int width, std::uint8_t* const* planes) {
  for (int x = 0; x < width; ++x)
    for (int c = 0; c < 3; ++c) planes[c][x] = *in++;
}

void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width, std::uint8_t* out) {
  const auto times = [](int value, int factor) { return (value * factor + (1 << 14)) >> 15; };
  const auto clamped = [](int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); };
  for (int i = 0; i < width; ++i) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    const int green = times(blue * (1 << kGreenBits), kGreenOfCb) + times(red * (1 << kGreenBits), kGreenOfCr);
    *out++ = clamped(y[i] + red + times(red, kRedOfCr));
    *out++ = clamped(y[i] + ((green + (1 << (kGreenBits - 1))) >> kGreenBits));
    *out++ = clamped(y[i] + 2 * blue + times(blue, kBlueOfCb));
  }
}

template <typename T>
void lookup(const std::uint8_t* in, int count, bool reversed, const T* table, const PointwiseConstants*, T* out) {
  for (int i = 0; i < count; ++i) out[i] = table[in[reversed ? count - 1 - i : i]];
}

template <typename T>
void lookup_rgb(const std::uint8_t* in, int pixels, const T (*tables)[256], const PointwiseConstants*, T* out) {
  for (int i = 0; i < pixels; ++i)
    for (int c = 0; c < 3; ++c) *out++ = tables[c][*in++];
}

void blend_float32(float* own, const float* partner, std::size_t count, float share, float rest) {
  for (std::size_t i = 0; i < count; ++i) own[i] = own[i] * share + partner[i] * rest;
}

void blend_float16(std::uint16_t* own, const std::uint16_t* partner, std::size_t count, float share, float rest) {
  const auto times = [](std::uint16_t half, float factor) { return from_half(to_half(from_half(half) * factor)); };
  for (std::size_t i = 0; i < count; ++i) own[i] = to_half(times(own[i], share) + times(partner[i], rest));
}

constexpr Kernels kScalar = {
    .name = "scalar",
    .pixels = &kScalarPixelKernels,
    .plan_row = plan_row,
    .horizontal = horizontal,
    .vertical = vertical,
    .split = split,
    .ycc_to_rgb = ycc_to_rgb,
    .lookup_float32 = lookup<float>,
    .lookup_float16 = lookup<std::uint16_t>,
    .lookup_rgb_float32 = lookup_rgb<float>,
    .lookup_rgb_float16 = lookup_rgb<std::uint16_t>,
    .blend_float32 = blend_float32,
    .blend_float16 = blend_float16,
    .linear_row_float32 = linear_row<float>,
    .linear_row_int16 = linear_row<std::int16_t>,
};

}  // namespace

const Kernels& scalar_kernels() { return kScalar; }

}  // namespace feedline::transform
