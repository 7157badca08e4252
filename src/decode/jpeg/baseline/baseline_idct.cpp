// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_idct.h"

#include <algorithm>
#include <array>

namespace feedline::decode::baseline {
namespace {

constexpr int kSide = 8;

std::int16_t wrapped(int value) { return static_cast<std::int16_t>(value); }
std::int16_t saturated(int value) { return static_cast<std::int16_t>(std::clamp(value, -32768, 32767)); }
// Unsigned sums wrap.
std::uint32_t times(std::int16_t value, int factor) { return static_cast<std::uint32_t>(value * factor); }
std::int16_t descaled(std::uint32_t sum, int shift) {
  return saturated(static_cast<std::int32_t>(sum + (1u << (shift - 1))) >> shift);
}

// Transforms eight values that are `step` apart, in place.
void transform(std::int16_t* v, std::size_t step, int shift) {
  const auto in = [v, step](std::size_t i) { return v[i * step]; };
  const std::uint32_t even2 = times(in(2), k0_541) + times(in(6), k0_541 - k1_847);
  const std::uint32_t even3 = times(in(2), k0_541 + k0_765) + times(in(6), k0_541);
  const std::uint32_t even0 = times(wrapped(in(0) + in(4)), 1 << kConstantBits);
  const std::uint32_t even1 = times(wrapped(in(0) - in(4)), 1 << kConstantBits);
  const std::uint32_t even[] = {even0 + even3, even1 + even2, even1 - even2, even0 - even3};

  const std::int16_t a = wrapped(in(7) + in(3)), b = wrapped(in(5) + in(1));
  const std::uint32_t c = times(a, k1_175 - k1_961) + times(b, k1_175);
  const std::uint32_t d = times(a, k1_175) + times(b, k1_175 - k0_390);
  const std::uint32_t odd[] = {times(in(7), -k0_899) + times(in(1), k1_501 - k0_899) + d,
                               times(in(5), -k2_562) + times(in(3), k3_072 - k2_562) + c,
                               times(in(5), k2_053 - k2_562) + times(in(3), -k2_562) + d,
                               times(in(7), k0_298 - k0_899) + times(in(1), -k0_899) + c};
  for (std::size_t i = 0; i < kSide / 2; ++i) {
    v[i * step] = descaled(even[i] + odd[i], shift);
    v[(kSide - 1 - i) * step] = descaled(even[i] - odd[i], shift);
  }
}

}  // namespace

void inverse_dct_of_block(const std::int16_t* coefficients, std::size_t row_stride, const std::uint16_t* quantisation,
                          std::uint8_t* out, std::size_t stride) {
  std::array<std::int16_t, kSide * kSide> work;
  bool only_first_row = true;
  for (std::size_t row = 0; row < kSide; ++row)
    for (std::size_t column = 0; column < kSide; ++column) {
      const std::int16_t coefficient = coefficients[row * row_stride + column];
      only_first_row &= row == 0 || coefficient == 0;
      work[row * kSide + column] = wrapped(coefficient * static_cast<std::int16_t>(quantisation[row * kSide + column]));
    }
  for (std::size_t column = 0; column < kSide; ++column) {
    std::int16_t* const v = work.data() + column;
    if (only_first_row)
      for (std::size_t row = kSide; row-- > 0;) v[row * kSide] = wrapped(v[0] * (1 << kFirstPassBits));
    else
      transform(v, kSide, kFirstPassShift);
  }
  for (std::size_t row = 0; row < kSide; ++row) {
    transform(work.data() + row * kSide, 1, kSecondPassShift);
    for (std::size_t column = 0; column < kSide; ++column)
      out[row * stride + column] =
          static_cast<std::uint8_t>(std::clamp<int>(work[row * kSide + column], -128, 127) + 128);
  }
}

}  // namespace feedline::decode::baseline
