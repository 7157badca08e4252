// SPDX-License-Identifier: Apache-2.0

// A weight has 22 fractional bits, too many for the fast 16-bit multiply-and-add of vector units. Each weight is split
// into weight = high * 65536 + low with low in [-32768, 32767] and high in [-65, 65]. Then
//   sum of pixel * weight = (sum of pixel * high) * 65536 + sum of pixel * low
// where each product has at most 8 + 16 bits and each pair of products fits in 32 bits. Sums over many taps may wrap
// modulo 2^32, and so may the result of combining them. The true sum fits in an int32, which Pillow also uses, so the
// result is exact. If all taps are available, the high parts are summed and shifted first, and the low parts are added
// to them, which saves the second sum.

#if defined(FEEDLINE_TRANSFORM_WEIGHT_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_WEIGHT_HALVES_INL_H_
#undef FEEDLINE_TRANSFORM_WEIGHT_HALVES_INL_H_
#else
#define FEEDLINE_TRANSFORM_WEIGHT_HALVES_INL_H_
#endif

#include "hwy/highway.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Half a pixel value in the units of the sum of products with high parts. This constant is added in advance, so that
// rounding costs nothing.
inline constexpr std::int32_t kHighRound = 1 << (kWeightBits - 1 - 16);

// The pairs [low of a, low of b] and [high of a, high of b], each as the two halves of a 32-bit lane.
struct WeightPair {
  std::int32_t low, high;
};
HWY_INLINE WeightPair weight_pair(std::int32_t a, std::int32_t b) {
  const auto low = [](std::int32_t w) { return static_cast<std::int32_t>(static_cast<std::int16_t>(w & 0xffff)); };
  const auto high = [&low](std::int32_t w) { return (w - low(w)) >> 16; };
  const auto join = [](std::int32_t first, std::int32_t second) {
    return static_cast<std::int32_t>((static_cast<std::uint32_t>(second) << 16) |
                                     (static_cast<std::uint32_t>(first) & 0xffffu));
  };
  return {join(low(a), low(b)), join(high(a), high(b))};
}

// Combines a lane's sums of low and high parts into the pixel value, before saturation.
HWY_INLINE VI32 combine(VI32 low, VI32 high) {
  return hn::ShiftRight<kWeightBits>(hn::Add(low, hn::ShiftLeft<16>(high)));
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
