// SPDX-License-Identifier: Apache-2.0

// Kernels for luma, blends, hue and smoothing. Floats are multiplied and added without fusing, so that the bytes equal
// those of the scalar kernels.

#if defined(FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pixel_ops/steps-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU16 = hn::Repartition<std::uint16_t, DU8>;
using DPixelF32 = hn::Repartition<float, DI32>;
using VPixelF32 = hn::Vec<DPixelF32>;
using VU16 = hn::Vec<DU16>;

// A vector of bytes, widened to four vectors of 32 bits in the order that pack() expects.
struct Quarters {
  VI32 part[4];
};

struct Halves {
  VI16 low, high;
};

HWY_INLINE Halves halves_of(VU8 bytes) {
  const DU8 d;
  const VU8 zero = hn::Zero(d);
  return {hn::BitCast(DI16(), hn::InterleaveLower(d, bytes, zero)),
          hn::BitCast(DI16(), hn::InterleaveUpper(d, bytes, zero))};
}

// Combines 16-bit numbers into pairs (a, b).
HWY_INLINE Quarters pairs_of(const Halves& a, const Halves& b) {
  const DI16 d;
  return {{hn::BitCast(DI32(), hn::InterleaveLower(d, a.low, b.low)),
           hn::BitCast(DI32(), hn::InterleaveUpper(d, a.low, b.low)),
           hn::BitCast(DI32(), hn::InterleaveLower(d, a.high, b.high)),
           hn::BitCast(DI32(), hn::InterleaveUpper(d, a.high, b.high))}};
}

HWY_INLINE Quarters quarters_of(VU8 bytes) {
  const VI16 zero = hn::Zero(DI16());
  return pairs_of(halves_of(bytes), {zero, zero});
}

HWY_INLINE VU8 packed(const Quarters& q) { return pack(q.part[0], q.part[1], q.part[2], q.part[3]); }

HWY_INLINE VI16 pair_constant(std::int16_t first, std::int16_t second) {
  return hn::BitCast(
      DI16(),
      hn::Set(DI32(), static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint16_t>(second)) << 16 |
                                                static_cast<std::uint16_t>(first))));
}

// 38470 g is 65536 g - 27066 g, which fits in pairs of 16 bits.
HWY_INLINE Quarters luma_of(VU8 red, VU8 green, VU8 blue) {
  const DI16 d16;
  const VI16 two = hn::Set(d16, 2);
  const Quarters first = pairs_of(halves_of(red), halves_of(green));
  const Quarters second = pairs_of(halves_of(blue), {two, two});
  const VI16 of_first = pair_constant(19595, 38470 - 65536), of_second = pair_constant(7471, 0x4000);
  Quarters out;
  each<4>([&](auto i) FEEDLINE_LANES {
    const VI32 sum = hn::Add(pair_dot(hn::BitCast(d16, first.part[i]), of_first),
                             pair_dot(hn::BitCast(d16, second.part[i]), of_second));
    out.part[i] = hn::Add(hn::ShiftRight<16>(first.part[i]), hn::ShiftRight<16>(sum));
  });
  return out;
}

HWY_INLINE VI32 blend_of(VI32 from, VI32 to, VPixelF32 factor) {
  const DPixelF32 d;
  const VPixelF32 way = hn::Mul(factor, hn::ConvertTo(d, hn::Sub(to, from)));
  const VPixelF32 value = hn::Min(hn::Add(hn::ConvertTo(d, from), way), hn::Set(d, 255.0f));
  return hn::ConvertTo(DI32(), hn::Max(value, hn::Zero(d)));
}

HWY_INLINE VU8 blend_of(const Quarters& from, VU8 to, VPixelF32 factor) {
  const Quarters wide = quarters_of(to);
  Quarters out;
  each<4>([&](auto i) FEEDLINE_LANES { out.part[i] = blend_of(from.part[i], wide.part[i], factor); });
  return packed(out);
}

inline void luma(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* out) {
  const DU8 d;
  const auto grey = [&](const std::uint8_t* from) FEEDLINE_LANES {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, from, red, green, blue);
    return packed(luma_of(red, green, blue));
  };
  std::size_t i = 0;
  for (; i + kBytes <= pixels; i += kBytes) hn::StoreU(grey(rgb + 3 * i), d, out + i);
  if (i == pixels) return;
  HWY_ALIGN std::uint8_t last[kRgbStep] = {};
  std::memcpy(last, rgb + 3 * i, 3 * (pixels - i));
  hn::StoreU(grey(last), d, last);
  std::memcpy(out + i, last, pixels - i);
}

inline std::uint64_t sum_luma(const std::uint8_t* rgb, std::size_t pixels) {
  const DU8 d;
  const hn::Repartition<std::uint64_t, DU8> wide;
  auto sum = hn::Zero(wide);
  const auto add = [&](const std::uint8_t* from) FEEDLINE_LANES {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, from, red, green, blue);
    sum = hn::Add(sum, hn::SumsOf8(packed(luma_of(red, green, blue))));
  };
  std::size_t i = 0;
  for (; i + kBytes <= pixels; i += kBytes) add(rgb + 3 * i);
  if (i < pixels) {
    HWY_ALIGN std::uint8_t last[kRgbStep] = {};  // black pixels add nothing
    std::memcpy(last, rgb + 3 * i, 3 * (pixels - i));
    add(last);
  }
  return hn::GetLane(hn::SumOfLanes(wide, sum));
}

inline void blend(const std::uint8_t* from, const std::uint8_t* to, std::size_t count, float factor,
                  std::uint8_t* out) {
  const DU8 d;
  const VPixelF32 factors = hn::Set(DPixelF32(), factor);
  const auto blended = [&](const std::uint8_t* a, const std::uint8_t* b)
                           FEEDLINE_LANES { return blend_of(quarters_of(hn::LoadU(d, a)), hn::LoadU(d, b), factors); };
  std::size_t i = 0;
  for (; i + kBytes <= count; i += kBytes) hn::StoreU(blended(from + i, to + i), d, out + i);
  if (i == count) return;
  HWY_ALIGN std::uint8_t a[kBytes] = {}, b[kBytes] = {};
  std::memcpy(a, from + i, count - i);
  std::memcpy(b, to + i, count - i);
  hn::StoreU(blended(a, b), d, b);
  std::memcpy(out + i, b, count - i);
}

inline void saturate(const std::uint8_t* rgb, std::size_t pixels, float factor, std::uint8_t* out) {
  const DU8 d;
  const VPixelF32 factors = hn::Set(DPixelF32(), factor);
  in_steps<kRgbStep>(rgb, 3 * pixels, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, from, red, green, blue);
    const Quarters grey = luma_of(red, green, blue);
    hn::StoreInterleaved3(blend_of(grey, red, factors), blend_of(grey, green, factors), blend_of(grey, blue, factors),
                          d, to);
  });
}

// Computes a / number, correctly rounded. A fused multiply-add avoids the division: multiplying by the rounded inverse
// produces a quotient with an error of less than a bit, which the exact remainder corrects (Markstein 1990).
struct DivideBy {
  VPixelF32 number, inverse;

  HWY_INLINE explicit DivideBy(float value)
      : number(hn::Set(DPixelF32(), value)), inverse(hn::Set(DPixelF32(), 1.0f / value)) {}
  HWY_INLINE VPixelF32 operator()(VPixelF32 a) const {
    if (!HWY_NATIVE_FMA) return hn::Div(a, number);
    const VPixelF32 quotient = hn::Mul(a, inverse);
    return hn::MulAdd(hn::NegMulAdd(quotient, number, a), inverse, quotient);
  }
};

struct HsvVectors {
  VU8 hue, most;
  VPixelF32 saturation[4], value[4];  // whole numbers of the quarters
};

// Computes in float32, although Pillow uses double: the results are equal for all colours. The hue of grey pixels,
// which have no saturation, is arbitrary.
HWY_INLINE HsvVectors to_hsv_vectors(VU8 red, VU8 green, VU8 blue) {
  const DU8 d;
  const DPixelF32 df;
  const VU8 most = hn::Max(red, hn::Max(green, blue));
  const VU8 least = hn::Min(red, hn::Min(green, blue));
  const VU8 middle = hn::Sub(hn::Add(hn::Add(red, green), blue), hn::Add(most, least));  // sums wrap
  const VU8 range = hn::Sub(most, least);
  // Pillow subtracts the normalised distances of two channels from the largest channel: that of the smallest is 1, that
  // of the middle one is between
  const auto is_red = hn::Eq(red, most), is_green = hn::Eq(green, most);
  const VU8 less = hn::IfThenElse(is_red, green, hn::IfThenElse(is_green, blue, red));
  const VU8 base = hn::IfThenZeroElse(is_red, hn::IfThenElse(is_green, hn::Set(d, 2), hn::Set(d, 4)));
  const auto rises = hn::Eq(less, least);
  const VU8 from = hn::IfThenElse(rises, base, hn::Add(base, hn::Set(d, 2)));  // the hue's sixth, and 1
  const VU8 falls = hn::IfThenZeroElse(rises, hn::Set(d, 0xff));
  const Halves way = halves_of(hn::Sub(most, middle));
  const auto negated = [&](VI16 number, VU8 where) FEEDLINE_LANES {
    const VI16 sign = hn::BitCast(DI16(), where);
    return hn::Sub(hn::Xor(number, sign), sign);
  };
  const Halves ways{negated(way.low, hn::InterleaveLower(d, falls, falls)),
                    negated(way.high, hn::InterleaveUpper(d, falls, falls))};
  const VI16 zero = hn::Zero(DI16());
  const Quarters mosts = quarters_of(most), ranges = quarters_of(range), froms = quarters_of(from);
  const Quarters high_ways = pairs_of({zero, zero}, ways);
  const VPixelF32 one = hn::Set(df, 1.0f), full = hn::Set(df, 255.0f);
  const DivideBy by_six(6.0f);
  HsvVectors out;
  out.most = most;
  Quarters hues;
  each<4>([&](auto i) FEEDLINE_LANES {
    const VPixelF32 range_f = hn::ConvertTo(df, ranges.part[i]), most_f = hn::ConvertTo(df, mosts.part[i]);
    const VPixelF32 way_f = hn::ConvertTo(df, hn::ShiftRight<16>(high_ways.part[i]));
    const VPixelF32 begin = hn::Sub(hn::ConvertTo(df, froms.part[i]), one);
    VPixelF32 turns = by_six(hn::Add(begin, hn::Div(way_f, hn::Max(range_f, one))));
    turns = hn::IfThenElse(hn::Lt(turns, hn::Zero(df)), hn::Add(turns, one), turns);
    hues.part[i] = hn::ConvertTo(DI32(), hn::Mul(turns, full));
    const VPixelF32 saturation = hn::Mul(hn::Div(range_f, hn::Max(most_f, one)), full);
    out.saturation[i] = hn::ConvertTo(df, hn::ConvertTo(DI32(), saturation));
    out.value[i] = most_f;
  });
  out.hue = packed(hues);
  return out;
}

HWY_INLINE void store_rgb(const HsvVectors& hsv, std::uint8_t* out) {
  const DU8 d;
  const DPixelF32 df;
  const auto reaches = [&](std::uint8_t hue) FEEDLINE_LANES {
    return hn::Eq(hn::Max(hsv.hue, hn::Set(d, hue)), hsv.hue);  // not every target compares unsigned bytes
  };
  // the first bytes of the sixths of 255; 255 itself belongs to the last one
  const auto second = reaches(43), third = reaches(85), fourth = reaches(128), fifth = reaches(170),
             last = reaches(213);
  // 6 hue - 255 sixth, which fits in a byte
  const VU8 twice = hn::Add(hsv.hue, hsv.hue);
  VU8 rest = hn::Add(twice, hn::Add(twice, twice));
  const auto count = [&](auto mask) FEEDLINE_LANES { rest = hn::Sub(rest, hn::VecFromMask(d, mask)); };
  count(second), count(third), count(fourth), count(fifth), count(last);
  const Quarters rests = quarters_of(rest);
  const VPixelF32 one = hn::Set(df, 1.0f), half = hn::Set(df, 0.5f);
  const DivideBy by_full(255.0f);
  Quarters p_lanes, q_lanes, t_lanes;
  each<4>([&](auto i) FEEDLINE_LANES {
    const VPixelF32 value = hsv.value[i], s = by_full(hsv.saturation[i]);
    const VPixelF32 f = by_full(hn::ConvertTo(df, rests.part[i]));
    const auto less = [&](VPixelF32 share) FEEDLINE_LANES {
      return hn::ConvertTo(DI32(), hn::Add(hn::Sub(value, hn::Mul(value, share)), half));
    };
    p_lanes.part[i] = less(s);
    q_lanes.part[i] = less(hn::Mul(s, f));
    t_lanes.part[i] = less(hn::Mul(s, hn::Sub(one, f)));
  });
  const VU8 p = packed(p_lanes), q = packed(q_lanes), t = packed(t_lanes);
  const auto from = [&](auto mask, VU8 then, VU8 before) FEEDLINE_LANES { return hn::IfThenElse(mask, then, before); };
  const VU8 red = from(last, hsv.most, from(fifth, t, from(third, p, from(second, q, hsv.most))));
  const VU8 green = from(fifth, p, from(fourth, q, from(second, hsv.most, t)));
  const VU8 blue = from(last, q, from(fourth, hsv.most, from(third, t, p)));
  hn::StoreInterleaved3(red, green, blue, d, out);
}

inline void shift_hue(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) {
  const DU8 d;
  const VU8 shifts = hn::Set(d, shift);
  in_steps<kRgbStep>(rgb, 3 * pixels, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, from, red, green, blue);
    HsvVectors hsv = to_hsv_vectors(red, green, blue);
    hsv.hue = hn::Add(hsv.hue, shifts);
    store_rgb(hsv, to);
  });
}

// (n * 5042) >> 16 equals n / 13 for n up to 3321, the largest sum.
inline void smooth(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) {
  const DU16 d;
  const hn::Rebind<std::uint8_t, DU16> bytes;
  constexpr std::ptrdiff_t kStep = kBytes / 2;
  const std::ptrdiff_t first = channels, end = std::ptrdiff_t{width - 1} * channels;
  const auto move = [&](std::ptrdiff_t i) FEEDLINE_LANES {
    const auto at = [&](int row, std::ptrdiff_t point)
                        FEEDLINE_LANES { return hn::PromoteTo(d, hn::LoadU(bytes, rows[row] + point)); };
    VU16 sum = hn::Add(hn::ShiftLeft<2>(at(1, i)), hn::Set(d, 6));
    each<3>([&](auto row) FEEDLINE_LANES {
      const VU16 sides = hn::Add(at(row, i - channels), at(row, i + channels));
      sum = hn::Add(sum, hn::Add(sides, at(row, i)));
    });
    const VI16 divided = hn::BitCast(DI16(), hn::MulHigh(sum, hn::Set(d, 5042)));
    hn::StoreU(hn::DemoteTo(bytes, divided), bytes, out + i);
  };
  if (end - first < kStep) return kScalarPixelKernels.smooth(rows, width, channels, out);
  for (std::ptrdiff_t i = first; i + kStep <= end; i += kStep) move(i);
  move(end - kStep);  // overlaps: writes some bytes twice
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
