// SPDX-License-Identifier: Apache-2.0

// Two lane operations that the resize kernels need and that Highway does not provide portably, compiled once per
// target. `pair_dot` computes, for each 32-bit lane, the sum of the products of its two 16-bit halves. `pack` converts
// four vectors of 32-bit sums to bytes with saturation; each 128-bit block has the bytes of a, b, c and d in this
// order.

#if defined(FEEDLINE_TRANSFORM_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_LANES_INL_H_
#undef FEEDLINE_TRANSFORM_LANES_INL_H_
#else
#define FEEDLINE_TRANSFORM_LANES_INL_H_
#endif

#include <type_traits>
#include <utility>

#include "hwy/highway.h"

#undef FEEDLINE_LANES  // defined again for each target

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
inline constexpr int kBytes = 64;
using DU8 = hn::FixedTag<std::uint8_t, kBytes>;
using DI16 = hn::FixedTag<std::int16_t, 32>;
using DI32 = hn::FixedTag<std::int32_t, 16>;

HWY_INLINE hn::Vec<DI32> pair_dot(hn::Vec<DI16> a, hn::Vec<DI16> b) {
  return hn::Vec<DI32>{_mm512_madd_epi16(a.raw, b.raw)};
}
HWY_INLINE hn::Vec<DU8> pack(hn::Vec<DI32> a, hn::Vec<DI32> b, hn::Vec<DI32> c, hn::Vec<DI32> d) {
  return hn::Vec<DU8>{_mm512_packus_epi16(_mm512_packs_epi32(a.raw, b.raw), _mm512_packs_epi32(c.raw, d.raw))};
}

#elif HWY_TARGET == HWY_AVX2
inline constexpr int kBytes = 32;
using DU8 = hn::FixedTag<std::uint8_t, kBytes>;
using DI16 = hn::FixedTag<std::int16_t, 16>;
using DI32 = hn::FixedTag<std::int32_t, 8>;

HWY_INLINE hn::Vec<DI32> pair_dot(hn::Vec<DI16> a, hn::Vec<DI16> b) {
  return hn::Vec<DI32>{_mm256_madd_epi16(a.raw, b.raw)};
}
HWY_INLINE hn::Vec<DU8> pack(hn::Vec<DI32> a, hn::Vec<DI32> b, hn::Vec<DI32> c, hn::Vec<DI32> d) {
  return hn::Vec<DU8>{_mm256_packus_epi16(_mm256_packs_epi32(a.raw, b.raw), _mm256_packs_epi32(c.raw, d.raw))};
}

#else
inline constexpr int kBytes = 16;
using DU8 = hn::FixedTag<std::uint8_t, kBytes>;
using DI16 = hn::FixedTag<std::int16_t, 8>;
using DI32 = hn::FixedTag<std::int32_t, 4>;

#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
HWY_INLINE hn::Vec<DI32> pair_dot(hn::Vec<DI16> a, hn::Vec<DI16> b) {
  return hn::Vec<DI32>{_mm_madd_epi16(a.raw, b.raw)};
}
HWY_INLINE hn::Vec<DU8> pack(hn::Vec<DI32> a, hn::Vec<DI32> b, hn::Vec<DI32> c, hn::Vec<DI32> d) {
  return hn::Vec<DU8>{_mm_packus_epi16(_mm_packs_epi32(a.raw, b.raw), _mm_packs_epi32(c.raw, d.raw))};
}
#else
HWY_INLINE hn::Vec<DI32> pair_dot(hn::Vec<DI16> a, hn::Vec<DI16> b) {
  const DI32 d;
  const auto wide_a = hn::BitCast(d, a);
  const auto wide_b = hn::BitCast(d, b);
  const auto low = [](hn::Vec<DI32> v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  return hn::Add(hn::Mul(low(wide_a), low(wide_b)), hn::Mul(hn::ShiftRight<16>(wide_a), hn::ShiftRight<16>(wide_b)));
}
HWY_INLINE hn::Vec<DU8> pack(hn::Vec<DI32> a, hn::Vec<DI32> b, hn::Vec<DI32> c, hn::Vec<DI32> d) {
  const hn::Rebind<std::uint8_t, DI32> quarter;
  HWY_ALIGN std::uint8_t bytes[16];
  hn::StoreU(hn::DemoteTo(quarter, a), quarter, bytes);
  hn::StoreU(hn::DemoteTo(quarter, b), quarter, bytes + 4);
  hn::StoreU(hn::DemoteTo(quarter, c), quarter, bytes + 8);
  hn::StoreU(hn::DemoteTo(quarter, d), quarter, bytes + 12);
  return hn::Load(DU8(), bytes);
}
#endif
#endif

// Attributes for lambdas with vectors: compiled for the target and always inlined.
#define FEEDLINE_LANES HWY_ATTR __attribute__((always_inline))

// Calls f(0), f(1), ... f(kCount - 1) with compile-time constants, so that arrays of vectors that are indexed with them
// stay in registers at every optimization level.
template <int kCount, typename F>
HWY_INLINE void each(F f) {
  [&f]<int... kIndex>(std::integer_sequence<int, kIndex...>) FEEDLINE_LANES {
    (f(std::integral_constant<int, kIndex>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

// The number of 128-bit blocks in a vector.
inline constexpr int kBlocks = kBytes / 16;

using VU8 = hn::Vec<DU8>;
using VI16 = hn::Vec<DI16>;
using VI32 = hn::Vec<DI32>;

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
