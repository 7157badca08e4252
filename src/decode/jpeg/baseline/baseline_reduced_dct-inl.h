// SPDX-License-Identifier: Apache-2.0

// Computes the 4 x 4 transform of baseline_reduced_dct.h for a group of blocks at once, with one block in 128 bits of a
// vector. At most half of the 128 bits are used, because rows have only four values, before and after the
// transposition. Vectors do not make the 1 x 1 and 2 x 2 transforms faster.

#if defined(FEEDLINE_DECODE_BASELINE_REDUCED_DCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_DECODE_BASELINE_REDUCED_DCT_INL_H_
#undef FEEDLINE_DECODE_BASELINE_REDUCED_DCT_INL_H_
#else
#define FEEDLINE_DECODE_BASELINE_REDUCED_DCT_INL_H_
#endif

#include <cstring>

#include "decode/jpeg/baseline/baseline_idct-inl.h"
#include "decode/jpeg/baseline/baseline_reduced_dct.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR  // has a single lane; the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE Word wider(Word v) { return hn::SaturatedAdd(v, hn::MulFixedPoint15(v, hn::Set(Words(), kReduced0_306))); }
HWY_INLINE Word narrower(Word v) { return hn::MulFixedPoint15(v, hn::Set(Words(), kReduced0_541)); }

HWY_INLINE void reduced_transform(Word (&v)[4]) {
  const Word e0 = hn::SaturatedAdd(v[0], v[2]), e1 = hn::SaturatedSub(v[0], v[2]);
  const Word a = hn::SaturatedAdd(wider(v[1]), narrower(v[3]));
  const Word b = hn::SaturatedSub(narrower(v[1]), wider(v[3]));
  v[0] = hn::SaturatedAdd(e0, a), v[1] = hn::SaturatedAdd(e1, b);
  v[2] = hn::SaturatedSub(e1, b), v[3] = hn::SaturatedSub(e0, a);
}

// Transposes the first four lanes of four vectors: each of the resulting vectors has two rows, the first in its lower
// 64 bits.
struct TransposedPairs {
  Word v01, v23;
};
HWY_INLINE TransposedPairs transposed(const Word (&v)[4]) {
  const Words d;
  const Sums wide;
  const auto low = hn::BitCast(wide, hn::InterleaveLower(d, v[0], v[1]));
  const auto high = hn::BitCast(wide, hn::InterleaveLower(d, v[2], v[3]));
  return {hn::BitCast(d, hn::InterleaveLower(wide, low, high)), hn::BitCast(d, hn::InterleaveUpper(wide, low, high))};
}

HWY_INLINE Word upper_of_block(Word v) {
  const hn::Repartition<std::int64_t, Words> halves;
  const auto bits = hn::BitCast(halves, v);
  return hn::BitCast(Words(), hn::InterleaveUpper(halves, bits, bits));
}

HWY_INLINE void four_by_four_of_group(const std::int16_t* coefficients, const std::uint16_t* quantisation,
                                      std::uint8_t* out, std::size_t stride) {
  const Words d;
  Word v[4];
  for (int i = 0; i < 4; ++i)
    v[i] = hn::ShiftLeft<kReducedBits>(
        hn::Mul(hn::Load(d, coefficients + i * kBlockSide * kGroup),
                hn::LoadDup128(d, reinterpret_cast<const std::int16_t*>(quantisation) + i * kBlockSide)));
  reduced_transform(v);
  const TransposedPairs columns = transposed(v);
  v[0] = columns.v01, v[1] = upper_of_block(columns.v01);
  v[2] = columns.v23, v[3] = upper_of_block(columns.v23);
  reduced_transform(v);
  const TransposedPairs rows = transposed(v);
  const Word half = hn::Set(d, 1 << (kReducedShift - 1)), middle = hn::Set(d, 128);
  const auto samples = [half, middle](Word word) HWY_ATTR {
    return hn::SaturatedAdd(hn::ShiftRight<kReducedShift>(hn::SaturatedAdd(word, half)), middle);
  };
  const hn::Rebind<std::uint8_t, Words> bytes;
  HWY_ALIGN std::uint8_t pairs[2][8 * kGroup];  // rows 0 and 1, then 2 and 3, of each block
  hn::Store(hn::DemoteTo(bytes, samples(rows.v01)), bytes, pairs[0]);
  hn::Store(hn::DemoteTo(bytes, samples(rows.v23)), bytes, pairs[1]);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t block = 0; block < kGroup; ++block)
      std::memcpy(out + row * stride + block * 4, pairs[row / 2] + block * 8 + row % 2 * 4, 4);
}

template <int kReduction>
void reduced_dct(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups, std::uint8_t* out,
                 std::size_t stride) {
  const Words d;
  constexpr int kSide = kBlockSide >> kReduction;
  for (; groups > 0; --groups, out += kSide * kGroup) {
    if constexpr (kReduction == 1)
      four_by_four_of_group(coefficients, quantisation, out, stride);
    else
      for (int i = 0; i < kGroup; ++i)
        reduced_dct_of_block(coefficients + i * kBlockSide, kBlockSide * kGroup, quantisation, kReduction,
                             out + i * kSide, stride);
    for (int i = 0; i < 8; ++i, coefficients += kBlockSide * kGroup) hn::Store(hn::Zero(d), d, coefficients);
  }
}

}  // namespace feedline::decode::baseline::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
