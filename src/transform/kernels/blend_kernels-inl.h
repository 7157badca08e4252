// SPDX-License-Identifier: Apache-2.0

// Mixes two rows of a batch into one. Products and the sum are rounded separately, as in torch.

#if defined(FEEDLINE_TRANSFORM_BLEND_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_BLEND_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_BLEND_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_BLEND_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "transform/kernels/emit_kernels-inl.h"
#include "transform/kernels/kernels.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline void blend_float32(float* own, const float* partner, std::size_t count, float share, float rest) {
  constexpr std::size_t kLanes = kFloats;
  const DF32 d;
  const VF32 shares = hn::Set(d, share), rests = hn::Set(d, rest);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::Add(hn::Mul(hn::LoadU(d, own + i), shares), hn::Mul(hn::LoadU(d, partner + i), rests)), d, own + i);
  for (; i < count; ++i) own[i] = own[i] * share + partner[i] * rest;
}

HWY_INLINE VF32 load_halves(const std::uint16_t* in) {
  const hn::Rebind<hwy::float16_t, DF32> half;
  const hn::Rebind<std::uint16_t, DF32> bits;
  return hn::PromoteTo(DF32(), hn::BitCast(half, hn::LoadU(bits, in)));
}

HWY_INLINE VF32 as_halves(VF32 values) {
  const hn::Rebind<hwy::float16_t, DF32> half;
  return hn::PromoteTo(DF32(), hn::DemoteTo(half, values));
}

inline void blend_float16(std::uint16_t* own, const std::uint16_t* partner, std::size_t count, float share,
                          float rest) {
  // targets without fused multiply-add have no conversion that rounds to halves, and its emulation truncates
  if (!kFused) return scalar_kernels().blend_float16(own, partner, count, share, rest);
  constexpr std::size_t kLanes = kFloats;
  const DF32 d;
  const VF32 shares = hn::Set(d, share), rests = hn::Set(d, rest);
  const auto blend = [&](std::uint16_t* to, const std::uint16_t* from) HWY_ATTR {
    store(hn::Add(as_halves(hn::Mul(load_halves(to), shares)), as_halves(hn::Mul(load_halves(from), rests))), to);
  };
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) blend(own + i, partner + i);
  if (i == count) return;
  std::uint16_t own_rest[kLanes] = {}, partner_rest[kLanes] = {};
  std::copy(own + i, own + count, own_rest);
  std::copy(partner + i, partner + count, partner_rest);
  blend(own_rest, partner_rest);
  std::copy(own_rest, own_rest + (count - i), own + i);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
