// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes the accurate inverse DCT of libjpeg for one block (Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D
// DCT algorithms with 11 multiplications", ICASSP 1989; each product in 13-bit fixed point).

#include <cstddef>
#include <cstdint>

namespace feedline::decode::baseline {

inline constexpr int kConstantBits = 13;
inline constexpr int kFirstPassBits = 2;  // fractional bits of the first pass
inline constexpr int kFirstPassShift = kConstantBits - kFirstPassBits;
inline constexpr int kSecondPassShift = kConstantBits + kFirstPassBits + 3;

constexpr int fixed(double value) { return static_cast<int>(value * (1 << kConstantBits) + 0.5); }
inline constexpr int k0_298 = fixed(0.298631336), k0_390 = fixed(0.390180644), k0_541 = fixed(0.541196100),
                     k0_765 = fixed(0.765366865), k0_899 = fixed(0.899976223), k1_175 = fixed(1.175875602),
                     k1_501 = fixed(1.501321110), k1_847 = fixed(1.847759065), k1_961 = fixed(1.961570560),
                     k2_053 = fixed(2.053119869), k2_562 = fixed(2.562915447), k3_072 = fixed(3.072711026);

// Row r of the coefficients starts at r * row_stride. Values that exceed 16 bits wrap or saturate as in libjpeg-turbo's
// x86 vector code, so that out-of-range coefficients produce the same pixels. This includes the effect of its shortcut:
// if a block has only zeros below its first row, the first pass wraps instead of saturating.
void inverse_dct_of_block(const std::int16_t* coefficients, std::size_t row_stride, const std::uint16_t* quantisation,
                          std::uint8_t* out, std::size_t stride);

}  // namespace feedline::decode::baseline
