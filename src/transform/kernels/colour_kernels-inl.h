// SPDX-License-Identifier: Apache-2.0

// Converts rows of Y, Cb and Cr to RGB, by the formula in scalar_kernels.cpp.

#if defined(FEEDLINE_TRANSFORM_COLOUR_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_COLOUR_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_COLOUR_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_COLOUR_KERNELS_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using HalfBytes = hn::Rebind<std::uint8_t, DI16>;

struct RgbWords {
  VI16 red, green, blue;
};

// Each member has half a vector of bytes.
HWY_INLINE RgbWords rgb_of(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr) {
  const DI16 d;
  const auto load = [d](const std::uint8_t* from) HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(HalfBytes(), from)); };
  const VI16 middle = hn::Set(d, 128);
  const VI16 luma = load(y), b = hn::Sub(load(cb), middle), r = hn::Sub(load(cr), middle);
  const VI16 green = hn::Add(hn::MulFixedPoint15(hn::ShiftLeft<kGreenBits>(b), hn::Set(d, kGreenOfCb)),
                             hn::MulFixedPoint15(hn::ShiftLeft<kGreenBits>(r), hn::Set(d, kGreenOfCr)));
  return {hn::Add(luma, hn::Add(r, hn::MulFixedPoint15(r, hn::Set(d, kRedOfCr)))),
          hn::Add(luma, hn::ShiftRight<kGreenBits>(hn::Add(green, hn::Set(d, 1 << (kGreenBits - 1))))),
          hn::Add(luma, hn::Add(hn::Add(b, b), hn::MulFixedPoint15(b, hn::Set(d, kBlueOfCb))))};
}

HWY_INLINE void store_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::uint8_t* out) {
  constexpr int kHalf = kBytes / 2;
  const RgbWords low = rgb_of(y, cb, cr), high = rgb_of(y + kHalf, cb + kHalf, cr + kHalf);
  const auto bytes = [](VI16 first, VI16 second) HWY_ATTR {
    const HalfBytes half;
    return hn::Combine(DU8(), hn::DemoteTo(half, second), hn::DemoteTo(half, first));
  };
  hn::StoreInterleaved3(bytes(low.red, high.red), bytes(low.green, high.green), bytes(low.blue, high.blue), DU8(), out);
}

inline void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                       std::uint8_t* out) {
  int x = 0;
  for (; x + kBytes <= width; x += kBytes) store_rgb(y + x, cb + x, cr + x, out + 3 * x);
  if (x == width) return;
  HWY_ALIGN std::uint8_t last[3 * kBytes];
  store_rgb(y + x, cb + x, cr + x, last);
  std::memcpy(out + 3 * x, last, 3 * static_cast<std::size_t>(width - x));
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
