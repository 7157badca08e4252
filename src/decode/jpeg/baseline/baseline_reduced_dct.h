// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes blocks at one half, one quarter or one eighth of their size. The inverse DCT uses only their lowest
// coefficients and omits the frequencies that a smaller image cannot represent. Each call transforms one block; all
// vector versions produce the same samples.
//
// In the scale of the coefficients, a transform of four maps x0 ... x3 to e0 +- a, e1 +- b with
//   e0 = x0 + x2    a = 1.306563 x1 + 0.541196 x3      (square root of 2 times the cosine of 1/8 and 3/8 pi)
//   e1 = x0 - x2    b = 0.541196 x1 - 1.306563 x3
// and one of two maps to x0 +- x1. The row and column passes together yield 8 * (sample - 128).

#include <cstddef>
#include <cstdint>

namespace feedline::decode::baseline {

inline constexpr int kMaxReduction = 3;  // log2; one sample per block

// The 4-point transform is computed in 16 bits: two fractional bits, rounded products with 15-bit factors, and
// saturated sums.
inline constexpr int kReducedBits = 2;
inline constexpr int kReducedShift = kReducedBits + 3;
constexpr std::int16_t fixed_15(double factor) { return static_cast<std::int16_t>(factor * (1 << 15) + 0.5); }
inline constexpr std::int16_t kReduced0_306 = fixed_15(0.306562965), kReduced0_541 = fixed_15(0.541196100);

// Writes 8 >> reduction rows of 8 >> reduction samples each. Row r of the coefficients starts at r * row_stride.
// Requires: 1 <= reduction <= kMaxReduction.
void reduced_dct_of_block(const std::int16_t* coefficients, std::size_t row_stride, const std::uint16_t* quantisation,
                          int reduction, std::uint8_t* out, std::size_t stride);

}  // namespace feedline::decode::baseline
