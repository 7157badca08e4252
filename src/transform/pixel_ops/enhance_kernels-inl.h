// SPDX-License-Identifier: Apache-2.0

// Luma, blends, hue and smoothing. Floats are multiplied and added in two steps, never fused: the plain
// kernels' bytes.

#if defined(FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_ENHANCE_KERNELS_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"
#include "transform/lanes-inl.h"
#include "transform/pixel_ops/pixel_kernels.h"
#include "transform/pixel_ops/steps-inl.h"

#if HWY_TARGET != HWY_SCALAR  // which has one lane: the plain kernels serve
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU16 = hn::Repartition<std::uint16_t, DU8>;
using DPixelF32 = hn::Repartition<float, DI32>;
using VPixelF32 = hn::Vec<DPixelF32>;
using VU16 = hn::Vec<DU16>;

// A vector of bytes as four of 32 bits, in the order that pack() takes.
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

// Pairs (a, b) of 16 bits.
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

// 38470 g is 65536 g - 27066 g, which fits pairs of 16 bits.
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

struct HsvLanes {
  VI32 hue, saturation, value;
};

// In float32, where Pillow has double: of all colours that there are, none comes out different.
HWY_INLINE HsvLanes to_hsv_lanes(VI32 red, VI32 green, VI32 blue) {
  const DI32 d;
  const DPixelF32 df;
  const VI32 most = hn::Max(red, hn::Max(green, blue)), least = hn::Min(red, hn::Min(green, blue));
  const VI32 range = hn::Sub(most, least);
  const VPixelF32 range_f = hn::ConvertTo(df, range);
  const auto from = [&](VI32 channel)
                        FEEDLINE_LANES { return hn::Div(hn::ConvertTo(df, hn::Sub(most, channel)), range_f); };
  const VPixelF32 from_red = from(red), from_green = from(green), from_blue = from(blue);
  const auto is_red = hn::RebindMask(df, hn::Eq(red, most)), is_green = hn::RebindMask(df, hn::Eq(green, most));
  // one of the two is 0 or 1, so that the sum of three is rounded once, as in double
  const auto around = [&](float base, VPixelF32 more, VPixelF32 less) FEEDLINE_LANES {
    const auto whole = hn::Eq(less, hn::Set(df, 1.0f));
    const VPixelF32 other = hn::Sub(hn::Add(hn::Set(df, base), more), less);
    return hn::IfThenElse(whole, hn::Add(hn::Set(df, base - 1.0f), more), other);
  };
  VPixelF32 hue = hn::IfThenElse(is_green, around(2.0f, from_red, from_blue), around(4.0f, from_green, from_red));
  hue = hn::IfThenElse(is_red, hn::Sub(from_blue, from_green), hue);
  VPixelF32 turns = hn::Div(hue, hn::Set(df, 6.0f));
  turns = hn::IfThenElse(hn::Lt(turns, hn::Zero(df)), hn::Add(turns, hn::Set(df, 1.0f)), turns);
  const VPixelF32 full = hn::Set(df, 255.0f);
  const auto grey = hn::Eq(range, hn::Zero(d));
  const VPixelF32 saturation = hn::Div(range_f, hn::ConvertTo(df, most));
  return {hn::IfThenZeroElse(grey, hn::ConvertTo(d, hn::Mul(turns, full))),
          hn::IfThenZeroElse(grey, hn::ConvertTo(d, hn::Mul(saturation, full))), most};
}

struct RgbLanes {
  VI32 red, green, blue;
};

HWY_INLINE RgbLanes to_rgb_lanes(const HsvLanes& hsv) {
  const DI32 d;
  const DPixelF32 df;
  const VI32 sixths = hn::Mul(hsv.hue, hn::Set(d, 6));
  // floor(sixths / 255) of numbers below 65536
  const VI32 sector = hn::ShiftRight<8>(hn::Add(hn::Add(sixths, hn::Set(d, 1)), hn::ShiftRight<8>(sixths)));
  const VI32 rest = hn::Sub(sixths, hn::Sub(hn::ShiftLeft<8>(sector), sector));
  const VPixelF32 full = hn::Set(df, 255.0f), one = hn::Set(df, 1.0f), half = hn::Set(df, 0.5f);
  const VPixelF32 f = hn::Div(hn::ConvertTo(df, rest), full), s = hn::Div(hn::ConvertTo(df, hsv.saturation), full);
  const VPixelF32 value = hn::ConvertTo(df, hsv.value);
  const auto less = [&](VPixelF32 share) FEEDLINE_LANES {
    return hn::ConvertTo(d, hn::Add(hn::Sub(value, hn::Mul(value, share)), half));
  };
  const VI32 v = hsv.value, p = less(s), q = less(hn::Mul(s, f)), t = less(hn::Mul(s, hn::Sub(one, f)));
  const auto at = [&](int i) FEEDLINE_LANES { return hn::Eq(sector, hn::Set(d, i)); };
  const auto first = hn::Or(at(0), at(6));
  const auto choose = [&](auto is_v, auto other_v, auto is_t, auto is_q) FEEDLINE_LANES {
    return hn::IfThenElse(hn::Or(is_v, other_v), v, hn::IfThenElse(is_t, t, hn::IfThenElse(is_q, q, p)));
  };
  return {choose(first, at(5), at(4), at(1)), choose(at(1), at(2), first, at(3)), choose(at(3), at(4), at(2), at(5))};
}

inline void shift_hue(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) {
  const DU8 d;
  const VI32 shifts = hn::Set(DI32(), shift), byte = hn::Set(DI32(), 255);
  in_steps<kRgbStep>(rgb, 3 * pixels, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    VU8 red, green, blue;
    hn::LoadInterleaved3(d, from, red, green, blue);
    const Quarters r = quarters_of(red), g = quarters_of(green), b = quarters_of(blue);
    Quarters out_r, out_g, out_b;
    each<4>([&](auto i) FEEDLINE_LANES {
      HsvLanes hsv = to_hsv_lanes(r.part[i], g.part[i], b.part[i]);
      hsv.hue = hn::And(hn::Add(hsv.hue, shifts), byte);
      const RgbLanes shifted = to_rgb_lanes(hsv);
      out_r.part[i] = shifted.red;
      out_g.part[i] = shifted.green;
      out_b.part[i] = shifted.blue;
    });
    hn::StoreInterleaved3(packed(out_r), packed(out_g), packed(out_b), d, to);
  });
}

// (n * 5042) >> 16 is n / 13 for n up to 3321, the largest sum.
inline void smooth(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) {
  const DU16 d;
  const hn::Rebind<std::uint8_t, DU16> bytes;
  constexpr std::ptrdiff_t kStep = kBytes / 2;
  const std::ptrdiff_t first = channels, end = std::ptrdiff_t{width - 1} * channels;
  const auto move = [&](std::ptrdiff_t i) FEEDLINE_LANES {
    const auto at = [&](int row, std::ptrdiff_t place)
                        FEEDLINE_LANES { return hn::PromoteTo(d, hn::LoadU(bytes, rows[row] + place)); };
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
  move(end - kStep);  // overlaps: the same bytes again
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
