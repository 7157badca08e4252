// SPDX-License-Identifier: Apache-2.0

// Upsampling and colour conversion of rows, compiled once per target; baseline_scalar_kernels.cpp has the formulas.

#if defined(FEEDLINE_DECODE_BASELINE_PIXELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_DECODE_BASELINE_PIXELS_INL_H_
#undef FEEDLINE_DECODE_BASELINE_PIXELS_INL_H_
#else
#define FEEDLINE_DECODE_BASELINE_PIXELS_INL_H_
#endif

#include <cstring>

#include "decode/jpeg/baseline/baseline_idct-inl.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR
HWY_BEFORE_NAMESPACE();
namespace feedline::decode::baseline::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Samples = hn::Rebind<std::uint8_t, Words>;
inline constexpr int kSamples = static_cast<int>(hn::MaxLanes(Words()));
static_assert(2 * kSamples <= static_cast<int>(kRowSlack));

HWY_INLINE Word load_samples(const std::uint8_t* from) { return hn::PromoteTo(Words(), hn::LoadU(Samples(), from)); }

// Interleaves the samples `even` and `odd` (bytes in words) into one row.
HWY_INLINE void store_pairs(Word even, Word odd, std::uint8_t* out) {
  const hn::Repartition<std::uint8_t, Words> bytes;
  hn::StoreU(hn::BitCast(bytes, hn::Or(even, hn::ShiftLeft<8>(odd))), bytes, out);
}

inline void upsample_across(const std::uint8_t* row, int count, std::uint8_t* out) {
  const Words d;
  const Word one = hn::Set(d, 1), two = hn::Set(d, 2);
  for (int i = 0; i < count; i += kSamples) {
    const Word here = load_samples(row + i);
    const Word three = hn::Add(here, hn::Add(here, here));
    const Word even = hn::Add(hn::Add(three, load_samples(row + i - 1)), one);
    const Word odd = hn::Add(hn::Add(three, load_samples(row + i + 1)), two);
    store_pairs(hn::ShiftRight<2>(even), hn::ShiftRight<2>(odd), out + 2 * i);
  }
}

HWY_INLINE Word three_to_one(const std::uint8_t* near, const std::uint8_t* far) {
  const Word here = load_samples(near);
  return hn::Add(hn::Add(here, load_samples(far)), hn::Add(here, here));
}

inline void upsample_both(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) {
  const Words d;
  const Word seven = hn::Set(d, 7), eight = hn::Set(d, 8);
  for (int i = 0; i < count; i += kSamples) {
    const Word here = three_to_one(near + i, far + i);
    const Word three = hn::Add(here, hn::Add(here, here));
    const Word even = hn::Add(hn::Add(three, three_to_one(near + i - 1, far + i - 1)), eight);
    const Word odd = hn::Add(hn::Add(three, three_to_one(near + i + 1, far + i + 1)), seven);
    store_pairs(hn::ShiftRight<4>(even), hn::ShiftRight<4>(odd), out + 2 * i);
  }
}

// 0.402 and -0.228 (1.402 - 1 and 1.772 - 2) in 16 and 17 bits, so that the remainder fits in a signed word.
inline constexpr std::int16_t kRed = 26345, kBlue = -14942;
inline constexpr int kGreenBlue = -22554, kGreenRed = 65536 - 46802;

// Computes 2^-16 * kFactor * v, rounded: doubling v adds one bit of precision, which is used for rounding.
template <std::int16_t kFactor>
HWY_INLINE Word scaled(Word v) {
  const Words d;
  const Word twice = hn::MulHigh(hn::Add(v, v), hn::Set(d, kFactor));
  return hn::ShiftRight<1>(hn::Add(twice, hn::Set(d, 1)));
}

struct Rgb {
  hn::Vec<Samples> r, g, b;
};

HWY_INLINE Rgb rgb_of(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr) {
  const Words d;
  const Sums sums;
  const Samples bytes;
  const Word middle = hn::Set(d, 128);
  const Word luma = load_samples(y);
  const Word blue = hn::Sub(load_samples(cb), middle), red = hn::Sub(load_samples(cr), middle);
  const Sum half = hn::Set(sums, 1 << 15);
  const Sum low = hn::ShiftRight<16>(dot<kGreenBlue, kGreenRed>(pairs<false>(blue, red), half));
  const Sum high = hn::ShiftRight<16>(dot<kGreenBlue, kGreenRed>(pairs<true>(blue, red), half));
  const Word green = hn::Sub(hn::ReorderDemote2To(d, low, high), red);
  return {hn::DemoteTo(bytes, hn::Add(luma, hn::Add(red, scaled<kRed>(red)))),
          hn::DemoteTo(bytes, hn::Add(luma, green)),
          hn::DemoteTo(bytes, hn::Add(luma, hn::Add(hn::Add(blue, blue), scaled<kBlue>(blue))))};
}

// Writes 2 * kSamples pixels.
HWY_INLINE void store_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, std::uint8_t* out) {
  const hn::Repartition<std::uint8_t, Words> d;
  const Rgb low = rgb_of(y, cb, cr), high = rgb_of(y + kSamples, cb + kSamples, cr + kSamples);
  hn::StoreInterleaved3(hn::Combine(d, high.r, low.r), hn::Combine(d, high.g, low.g), hn::Combine(d, high.b, low.b), d,
                        out);
}

inline void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                       std::uint8_t* out) {
  constexpr int kPixels = 2 * kSamples;
  int x = 0;
  for (; x + kPixels <= width; x += kPixels) store_rgb(y + x, cb + x, cr + x, out + 3 * x);
  if (x == width) return;
  HWY_ALIGN std::uint8_t last[3 * kPixels];
  store_rgb(y + x, cb + x, cr + x, last);
  std::memcpy(out + 3 * x, last, 3 * static_cast<std::size_t>(width - x));
}

}  // namespace feedline::decode::baseline::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
