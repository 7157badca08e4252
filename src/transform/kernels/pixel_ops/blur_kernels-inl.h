// SPDX-License-Identifier: Apache-2.0

// The two passes of a blur, in float32. Multiplications and additions are not fused, so that the bytes equal those of
// the scalar kernels.

#if defined(FEEDLINE_PIXEL_OPS_BLUR_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_BLUR_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_BLUR_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_BLUR_KERNELS_INL_H_
#endif

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DBlur = hn::Repartition<float, DI32>;
using VBlur = hn::Vec<DBlur>;
inline constexpr std::size_t kBlurLanes = kBytes / 4;
// The number of concurrent sums: all use the same load of a weight, and their additions are independent.
inline constexpr int kBlurSums = 4;
inline constexpr std::size_t kBlurStep = kBlurLanes * kBlurSums;

inline void to_float(const std::uint8_t* in, std::size_t count, float* out) {
  const DBlur d;
  const hn::Rebind<std::uint8_t, DBlur> bytes;
  std::size_t i = 0;
  for (; i + kBlurLanes <= count; i += kBlurLanes)
    hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(DI32(), hn::LoadU(bytes, in + i))), d, out + i);
  for (; i < count; ++i) out[i] = in[i];
}

// Computes sums[k] from load(j, k), which returns the value for tap j.
template <typename Load>
HWY_INLINE void sum_taps(const float* weights, int radius, Load load, VBlur (&sums)[kBlurSums]) {
  const DBlur d;
  const VBlur middle = hn::Set(d, weights[0]);
  each<kBlurSums>([&](auto k) FEEDLINE_LANES { sums[k] = hn::Mul(middle, load(0, k)); });
  for (int j = 1; j <= radius; ++j) {
    const VBlur weight = hn::Set(d, weights[j]);
    each<kBlurSums>(
        [&](auto k) FEEDLINE_LANES { sums[k] = hn::Add(sums[k], hn::Mul(weight, hn::Add(load(-j, k), load(j, k)))); });
  }
}

inline void blur_row(const float* in, const float* weights, int radius, int step, std::size_t count, float* out) {
  const DBlur d;
  const auto move = [&](std::size_t i) FEEDLINE_LANES {
    VBlur sums[kBlurSums];
    const auto load = [&](int j, int k) FEEDLINE_LANES {
      return hn::LoadU(d, in + i + static_cast<std::size_t>(k) * kBlurLanes + std::ptrdiff_t{j} * step);
    };
    sum_taps(weights, radius, load, sums);
    each<kBlurSums>([&](auto k) FEEDLINE_LANES { hn::StoreU(sums[k], d, out + i + k * kBlurLanes); });
  };
  if (count < kBlurStep) return kScalarPixelKernels.blur_row(in, weights, radius, step, count, out);
  for (std::size_t i = 0; i + kBlurStep <= count; i += kBlurStep) move(i);
  if (count % kBlurStep) move(count - kBlurStep);
}

inline void blur_rows(const float* const* rows, const float* weights, int radius, std::size_t count,
                      std::uint8_t* out) {
  const DBlur d;
  const hn::Rebind<std::uint8_t, DBlur> bytes;
  const auto move = [&](std::size_t i) FEEDLINE_LANES {
    VBlur sums[kBlurSums];
    const auto load = [&](int j, int k) FEEDLINE_LANES {
      return hn::LoadU(d, rows[radius + j] + i + static_cast<std::size_t>(k) * kBlurLanes);
    };
    sum_taps(weights, radius, load, sums);
    each<kBlurSums>([&](auto k) FEEDLINE_LANES {
      hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(sums[k])), bytes, out + i + k * kBlurLanes);
    });
  };
  if (count < kBlurStep) return kScalarPixelKernels.blur_rows(rows, weights, radius, count, out);
  for (std::size_t i = 0; i + kBlurStep <= count; i += kBlurStep) move(i);
  if (count % kBlurStep) move(count - kBlurStep);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
