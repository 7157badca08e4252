// SPDX-License-Identifier: Apache-2.0

// Converts bytes to the batch's element type: separates the channels, and computes the pointwise function instead of
// using the table if both are proved equal. divide(a, b) with r = round(1 / b): q = a * r, then q + (a - q * b) * r,
// each with one rounding. This is the correctly rounded quotient in nearly all cases (Markstein); the caller has
// checked all 256 inputs.

#if defined(FEEDLINE_TRANSFORM_EMIT_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_EMIT_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_EMIT_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_EMIT_KERNELS_INL_H_
#endif

#include "hwy/highway.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF32 = hn::Repartition<float, DI32>;
using VF32 = hn::Vec<DF32>;
inline constexpr int kFloats = kBlocks * 4;

inline void split(const std::uint8_t* in, int width, std::uint8_t* const* planes) {
  const DU8 d;
  constexpr int kPixels = kBlocks * 16;
  const auto move = [&](int x) HWY_ATTR {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, in + x * 3, red, green, blue);
    hn::StoreU(red, d, planes[0] + x);
    hn::StoreU(green, d, planes[1] + x);
    hn::StoreU(blue, d, planes[2] + x);
  };
  if (width < kPixels) {
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) planes[c][x] = in[x * 3 + c];
    return;
  }
  for (int x = 0; x + kPixels <= width; x += kPixels) move(x);
  if (width % kPixels) move(width - kPixels);  // overlaps: writes some bytes twice
}

// Without fused multiply-add, the corrected division is not proved, so the table is used.
inline constexpr bool kFused = HWY_NATIVE_FMA != 0;

struct PointwiseVectors {
  VF32 mean, std, reciprocal_std;
};

HWY_INLINE VF32 divide(VF32 a, VF32 b, VF32 reciprocal) {
  const VF32 quotient = hn::Mul(a, reciprocal);
  return hn::MulAdd(hn::NegMulAdd(quotient, b, a), reciprocal, quotient);
}

HWY_INLINE VF32 pointwise(const std::uint8_t* in, const PointwiseVectors& constants) {
  const DF32 d;
  const hn::Rebind<std::uint8_t, DF32> bytes;
  const VF32 x = hn::ConvertTo(d, hn::PromoteTo(DI32(), hn::LoadU(bytes, in)));
  const VF32 scaled = divide(x, hn::Set(d, 255.0f), hn::Set(d, kReciprocal255));
  return divide(hn::Sub(scaled, constants.mean), constants.std, constants.reciprocal_std);
}

HWY_INLINE void store(VF32 values, float* out) { hn::StoreU(values, DF32(), out); }

HWY_INLINE void store(VF32 values, std::uint16_t* out) {
  const hn::Rebind<hwy::float16_t, DF32> half;
  const hn::Rebind<std::uint16_t, DF32> bits;
  hn::StoreU(hn::BitCast(bits, hn::DemoteTo(half, values)), bits, out);
}

template <typename T>
void lookup_plane(const std::uint8_t* in, int count, bool reversed, const T* table, const PointwiseConstants* proved,
                  T* out) {
  if (!kFused || !proved || count < kFloats) {
    for (int i = 0; i < count; ++i) out[i] = table[in[reversed ? count - 1 - i : i]];
    return;
  }
  const DF32 d;
  const PointwiseVectors constants{hn::Set(d, proved->mean), hn::Set(d, proved->std),
                                   hn::Set(d, proved->reciprocal_std)};
  if (reversed) {
    const auto move = [&](int i)
                          HWY_ATTR { store(hn::Reverse(d, pointwise(in + count - kFloats - i, constants)), out + i); };
    for (int i = 0; i + kFloats <= count; i += kFloats) move(i);
    if (count % kFloats) move(count - kFloats);
    return;
  }
  for (int i = 0; i + kFloats <= count; i += kFloats) store(pointwise(in + i, constants), out + i);
  if (count % kFloats) store(pointwise(in + count - kFloats, constants), out + count - kFloats);
}

// Constants for interleaved channels, for each of the three channels that a vector may start with.
struct PhasedConstants {
  float mean[kFloats + 2], std[kFloats + 2], reciprocal_std[kFloats + 2];

  explicit PhasedConstants(const PointwiseConstants* channels) {
    for (int i = 0; i < kFloats + 2; ++i) {
      mean[i] = channels[i % 3].mean;
      std[i] = channels[i % 3].std;
      reciprocal_std[i] = channels[i % 3].reciprocal_std;
    }
  }
  HWY_INLINE PointwiseVectors at(int position) const {
    const DF32 d;
    const int phase = position % 3;
    return {hn::LoadU(d, mean + phase), hn::LoadU(d, std + phase), hn::LoadU(d, reciprocal_std + phase)};
  }
};

template <typename T>
void lookup_rgb(const std::uint8_t* in, int pixels, const T (*tables)[256], const PointwiseConstants* proved, T* out) {
  const int count = pixels * 3;
  if (!kFused || !proved || count < kFloats) {
    for (int i = 0; i < count; ++i) out[i] = tables[i % 3][in[i]];
    return;
  }
  const PhasedConstants constants(proved);
  for (int i = 0; i + kFloats <= count; i += kFloats) store(pointwise(in + i, constants.at(i)), out + i);
  if (count % kFloats) store(pointwise(in + count - kFloats, constants.at(count - kFloats)), out + count - kFloats);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
