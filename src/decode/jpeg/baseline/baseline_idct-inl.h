// SPDX-License-Identifier: Apache-2.0

// Computes the inverse DCT of baseline_idct.h for a group of blocks at once: a vector has row r of each block, with one
// block in 128 bits. Columns are transformed first, so the eight vectors are the eight inputs; then the blocks are
// transposed and transformed again.

#if defined(FEEDLINE_DECODE_BASELINE_IDCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_DECODE_BASELINE_IDCT_INL_H_
#undef FEEDLINE_DECODE_BASELINE_IDCT_INL_H_
#else
#define FEEDLINE_DECODE_BASELINE_IDCT_INL_H_
#endif

#include "decode/jpeg/baseline/baseline_idct.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR  // has a single lane; the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<std::int16_t, 32>;
using Sums = hn::RepartitionToWide<Words>;
using Word = hn::Vec<Words>;
using Sum = hn::Vec<Sums>;

inline constexpr int kGroup = static_cast<int>(hn::MaxLanes(Words())) / kBlockSide;
static_assert(kGroup >= 1 && kChunkMcus % kGroup == 0);

// Computes x * kX + y * kY + sum for the pairs (x, y) in `pairs`.
template <int kX, int kY>
HWY_INLINE Sum dot(Word pairs, Sum sum) {
  const Sums d;
  const Word factors =
      hn::BitCast(Words(), hn::Set(d, (kX & 0xFFFF) | static_cast<int>(static_cast<unsigned>(kY) << 16)));
  Sum odd = hn::Zero(d);
#if HWY_ARCH_X86  // adds in the lanes selected by `sum`
  const Sum even = hn::ReorderWidenMulAccumulate(d, pairs, factors, sum, odd);
  return hn::RearrangeToOddPlusEven(even, odd);
#else  // NEON adds elsewhere, until the sums are rearranged
  const Sum even = hn::ReorderWidenMulAccumulate(d, pairs, factors, hn::Zero(d), odd);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
#endif
}

// Interleaves the low or the high halves of the lanes of `a` and `b` in each block.
template <bool kHigh>
HWY_INLINE Word pairs(Word a, Word b) {
  return kHigh ? hn::InterleaveUpper(Words(), a, b) : hn::InterleaveLower(Words(), a, b);
}

// Computes half of a transform's lanes, before packing.
template <bool kHigh, int kShift>
HWY_INLINE void half_transform(const Word (&in)[8], Sum (&out)[8]) {
  const Sums d;
  const Word zero = hn::Zero(Words());
  const Sum none = hn::Zero(d);
  const Word in26 = pairs<kHigh>(in[2], in[6]);
  const Sum even2 = dot<k0_541, k0_541 - k1_847>(in26, none);
  const Sum even3 = dot<k0_541 + k0_765, k0_541>(in26, none);
  // a word followed by sixteen zeros, shifted down, is that word times 2^13
  const auto scaled = [zero, d](Word v) HWY_ATTR {
    return hn::ShiftRight<16 - kConstantBits>(hn::BitCast(d, pairs<kHigh>(zero, v)));
  };
  const Sum round = hn::Set(d, 1 << (kShift - 1));
  const Sum even0 = hn::Add(scaled(hn::Add(in[0], in[4])), round);
  const Sum even1 = hn::Add(scaled(hn::Sub(in[0], in[4])), round);
  const Sum even[] = {hn::Add(even0, even3), hn::Add(even1, even2), hn::Sub(even1, even2), hn::Sub(even0, even3)};

  const Word ab = pairs<kHigh>(hn::Add(in[7], in[3]), hn::Add(in[5], in[1]));
  const Sum c = dot<k1_175 - k1_961, k1_175>(ab, none);
  const Sum e = dot<k1_175, k1_175 - k0_390>(ab, none);
  const Word in71 = pairs<kHigh>(in[7], in[1]), in53 = pairs<kHigh>(in[5], in[3]);
  const Sum odd[] = {dot<-k0_899, k1_501 - k0_899>(in71, e), dot<-k2_562, k3_072 - k2_562>(in53, c),
                     dot<k2_053 - k2_562, -k2_562>(in53, e), dot<k0_298 - k0_899, -k0_899>(in71, c)};
  for (int i = 0; i < 4; ++i) {
    out[i] = hn::ShiftRight<kShift>(hn::Add(even[i], odd[i]));
    out[7 - i] = hn::ShiftRight<kShift>(hn::Sub(even[i], odd[i]));
  }
}

template <int kShift>
HWY_INLINE void transform(Word (&v)[8]) {
  Sum low[8], high[8];
  half_transform<false, kShift>(v, low);
  half_transform<true, kShift>(v, high);
  for (int i = 0; i < 8; ++i) v[i] = hn::ReorderDemote2To(Words(), low[i], high[i]);
}

// Interleaves pairs of vectors that are kDistance apart, in units of T.
template <typename T, int kDistance>
HWY_INLINE void interleave(const Word (&in)[8], Word (&out)[8]) {
  const hn::Repartition<T, Words> d;
  const Words words;
  for (int i = 0; i < 8; ++i) {
    if (i & kDistance) continue;
    const auto a = hn::BitCast(d, in[i]), b = hn::BitCast(d, in[i + kDistance]);
    // the two results replace the vectors whose transposed lanes they hold
    out[i] = hn::BitCast(words, hn::InterleaveLower(d, a, b));
    out[i + kDistance] = hn::BitCast(words, hn::InterleaveUpper(d, a, b));
  }
}

HWY_INLINE void transpose(Word (&v)[8]) {
  Word a[8], b[8], c[8];
  interleave<std::int16_t, 1>(v, a);
  interleave<std::int32_t, 2>(a, b);
  interleave<std::int64_t, 4>(b, c);
  // lanes end in bit-reversed order of the vectors
  v[0] = c[0], v[1] = c[4], v[2] = c[2], v[3] = c[6], v[4] = c[1], v[5] = c[5], v[6] = c[3], v[7] = c[7];
}

HWY_INLINE void inverse_dct_of_group(const std::int16_t* coefficients, const std::uint16_t* quantisation,
                                     std::uint8_t* out, std::size_t stride) {
  const Words d;
  const hn::Rebind<std::uint8_t, Words> bytes;
  constexpr int kRow = kBlockSide * kGroup;
  Word v[8];
  for (int i = 0; i < 8; ++i)
    v[i] = hn::Mul(hn::Load(d, coefficients + i * kRow),
                   hn::LoadDup128(d, reinterpret_cast<const std::int16_t*>(quantisation) + i * kBlockSide));
  const Word wrapped = hn::ShiftRight<kFirstPassBits>(hn::ShiftLeft<kFirstPassBits>(v[0]));
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(v[0], wrapped)))) {  // does not occur in photos: see inverse_dct_of_block()
    for (int i = 0; i < kGroup; ++i)
      inverse_dct_of_block(coefficients + i * kBlockSide, kRow, quantisation, out + i * kBlockSide, stride);
    return;
  }
  transform<kFirstPassShift>(v);
  transpose(v);
  transform<kSecondPassShift>(v);
  transpose(v);
  const Word middle = hn::Set(d, 128);
  for (int i = 0; i < 8; ++i)
    hn::StoreU(hn::DemoteTo(bytes, hn::SaturatedAdd(v[i], middle)), bytes, out + static_cast<std::size_t>(i) * stride);
}

inline void inverse_dct(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups, std::uint8_t* out,
                        std::size_t stride) {
  const Words d;
  for (; groups > 0; --groups, out += kBlockSide * kGroup) {
    inverse_dct_of_group(coefficients, quantisation, out, stride);
    for (int i = 0; i < 8; ++i, coefficients += kBlockSide * kGroup) hn::Store(hn::Zero(d), d, coefficients);
  }
}

}  // namespace feedline::decode::baseline::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
