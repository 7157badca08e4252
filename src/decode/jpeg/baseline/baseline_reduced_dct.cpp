// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_reduced_dct.h"

#include <algorithm>
#include <array>

namespace feedline::decode::baseline {
namespace {

constexpr std::size_t kFour = 4;

std::int16_t wrapped(int value) { return static_cast<std::int16_t>(value); }
std::int16_t saturated(int value) { return static_cast<std::int16_t>(std::clamp(value, -32768, 32767)); }
std::uint8_t sample(int value) { return static_cast<std::uint8_t>(std::clamp(value, -128, 127) + 128); }
int times(std::int16_t value, std::int16_t factor) { return (value * factor + (1 << 14)) >> 15; }
// 1.306563 times
std::int16_t widened(std::int16_t value) { return saturated(value + times(value, kReduced0_306)); }

// Transforms four values that are `step` apart, in place.
void transform(std::int16_t* v, std::size_t step) {
  const std::int16_t x0 = v[0], x1 = v[step], x2 = v[2 * step], x3 = v[3 * step];
  const std::int16_t e0 = saturated(x0 + x2), e1 = saturated(x0 - x2);
  const std::int16_t a = saturated(widened(x1) + times(x3, kReduced0_541));
  const std::int16_t b = saturated(times(x1, kReduced0_541) - widened(x3));
  v[0] = saturated(e0 + a), v[step] = saturated(e1 + b);
  v[2 * step] = saturated(e1 - b), v[3 * step] = saturated(e0 - a);
}

void four_by_four(const std::int16_t* coefficients, std::size_t row_stride, const std::uint16_t* quantisation,
                  std::uint8_t* out, std::size_t stride) {
  std::array<std::int16_t, kFour * kFour> work;
  for (std::size_t row = 0; row < kFour; ++row)
    for (std::size_t column = 0; column < kFour; ++column) {
      const std::int16_t step = static_cast<std::int16_t>(quantisation[row * 8 + column]);
      work[row * kFour + column] =
          wrapped(wrapped(coefficients[row * row_stride + column] * step) * (1 << kReducedBits));
    }
  for (std::size_t column = 0; column < kFour; ++column) transform(work.data() + column, kFour);
  for (std::size_t row = 0; row < kFour; ++row) {
    std::int16_t* const v = work.data() + row * kFour;
    transform(v, 1);
    for (std::size_t i = 0; i < kFour; ++i)
      out[row * stride + i] = sample(saturated(v[i] + (1 << (kReducedShift - 1))) >> kReducedShift);
  }
}

}  // namespace

void reduced_dct_of_block(const std::int16_t* coefficients, std::size_t row_stride, const std::uint16_t* quantisation,
                          int reduction, std::uint8_t* out, std::size_t stride) {
  if (reduction == 1) return four_by_four(coefficients, row_stride, quantisation, out, stride);
  const auto value = [&](std::size_t row, std::size_t column) {
    return int{
        wrapped(coefficients[row * row_stride + column] * static_cast<std::int16_t>(quantisation[row * 8 + column]))};
  };
  const int mean = value(0, 0) + 4;  // for rounding
  if (reduction == kMaxReduction) {
    out[0] = sample(mean >> 3);
    return;
  }
  const int across = value(0, 1), down = value(1, 0), both = value(1, 1);
  out[0] = sample((mean + across + down + both) >> 3);
  out[1] = sample((mean - across + down - both) >> 3);
  out[stride] = sample((mean + across - down - both) >> 3);
  out[stride + 1] = sample((mean - across - down + both) >> 3);
}

}  // namespace feedline::decode::baseline
