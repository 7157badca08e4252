// SPDX-License-Identifier: Apache-2.0

// The horizontal pass of a resize.
//
// Each 128-bit block of a vector computes one output pixel: it loads 16 source bytes from the pixel's first tap on,
// brings the taps of a channel together by byte lookups, multiplies and adds. The blocks of vector j (0..3) of a run
// compute the pixels 4
// * block + j, so that after packing, each block has four neighbouring pixels.
//
// RowPlan::weights, 3 channels:  [run][chunk of 4 taps][vector j] { taps 0,1 low | high | taps 2,3 low | high }
//                                each part a whole vector: per block the pair repeated for the four lanes
// RowPlan::weights, 1 channel:   [run][chunk of 8 taps][vector j] { low of 8 taps per block | high }
// RowPlan::offsets:              [run][vector j][block], bytes

#if defined(FEEDLINE_TRANSFORM_HORIZONTAL_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_HORIZONTAL_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_HORIZONTAL_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_HORIZONTAL_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <vector>

#include "hwy/highway.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/weight_halves-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kLanes16 = kBlocks * 8;    // 16-bit lanes of a vector
inline constexpr int kRunPixels = kBlocks * 4;  // output pixels per iteration: four vectors with one pixel per block

inline int taps_per_chunk(const RowPlan& plan) { return plan.channels == 3 ? (plan.table->taps() <= 2 ? 2 : 4) : 8; }

inline int vectors_per_chunk(const RowPlan& plan) { return plan.channels == 3 ? taps_per_chunk(plan) : 2; }

// The maximum number of taps that stay in registers for three channels.
inline constexpr int kMostFewTaps = 8;

// Writes the weights of one output pixel for one chunk to the pixel's block of the `parts` vectors at `at`.
inline void place_weights(const std::int32_t* taps, int channels, int count, std::int16_t* at) {
  if (channels == 1) {
    for (int t = 0; t < 8; ++t) {
      const WeightPair pair = weight_pair(taps[t], 0);
      at[t] = static_cast<std::int16_t>(pair.low);
      at[kLanes16 + t] = static_cast<std::int16_t>(pair.high);
    }
    return;
  }
  for (int t = 0; t < count; t += 2) {
    const WeightPair pair = weight_pair(taps[t], taps[t + 1]);
    const std::int32_t low[4] = {pair.low, pair.low, pair.low, pair.low};
    const std::int32_t high[4] = {pair.high, pair.high, pair.high, pair.high};
    std::memcpy(at + t * kLanes16, low, sizeof low);
    std::memcpy(at + (t + 1) * kLanes16, high, sizeof high);
  }
}

inline void plan_row(RowPlan& plan) {
  const AxisTable& table = *plan.table;
  const int per_chunk = taps_per_chunk(plan);
  const int parts = vectors_per_chunk(plan);
  plan.groups = (table.count() + kRunPixels - 1) / kRunPixels;
  plan.chunks = (table.taps() + per_chunk - 1) / per_chunk;
  // number of used taps, padded with weight 0 to pairs, or to whole chunks if the kernel loops over chunks
  const int width =
      plan.channels == 3 && table.taps() <= kMostFewTaps ? (table.taps() + 1) / 2 * 2 : plan.chunks * per_chunk;
  plan.offsets.resize(static_cast<std::size_t>(plan.groups) * kRunPixels);
  plan.weights.resize(plan.offsets.size() * static_cast<std::size_t>(plan.chunks * parts * 8));
  std::vector<std::int32_t>& taps = plan.scratch;
  taps.resize(static_cast<std::size_t>(plan.chunks * per_chunk));
  for (int i = 0; i < plan.groups * kRunPixels; ++i) {
    const int run = i / kRunPixels, pixel = i % kRunPixels, vector = pixel % 4, block = pixel / 4;
    const int source = std::min(i, table.count() - 1);  // past the end: repeats the last pixel, which is not stored
    // At the end of a row, starts further left, so that no read goes far past the end.
    const int first = std::min(table.first(source), std::max(0, plan.in_width - width));
    const int shift = table.first(source) - first;
    std::fill(taps.begin(), taps.end(), 0);
    std::copy_n(table.weights(source), table.used(source), taps.begin() + shift);
    plan.offsets[static_cast<std::size_t>((run * 4 + vector) * kBlocks + block)] = first * plan.channels;
    for (int chunk = 0; chunk < plan.chunks; ++chunk) {
      const std::size_t at = static_cast<std::size_t>(((run * plan.chunks + chunk) * 4 + vector) * parts) * kLanes16;
      place_weights(taps.data() + chunk * per_chunk, plan.channels, per_chunk, plan.weights.data() + at + block * 8);
    }
  }
}

// Loads the 16 bytes at in + offsets[b] into block b of the vector.
template <int kCount>
struct Gather;
template <>
struct Gather<1> {
  static HWY_INLINE auto load(const std::uint8_t* in, const std::int32_t* offsets) {
    return hn::LoadU(hn::FixedTag<std::uint8_t, 16>(), in + offsets[0]);
  }
};
template <int kCount>
struct Gather {
  static HWY_INLINE auto load(const std::uint8_t* in, const std::int32_t* offsets) {
    return hn::Combine(hn::FixedTag<std::uint8_t, kCount * 16>(), Gather<kCount / 2>::load(in, offsets + kCount / 2),
                       Gather<kCount / 2>::load(in, offsets));
  }
};

// Stores the first 12 bytes of each block contiguously, followed by 4 more bytes at the end.
template <int kCount>
struct Scatter;
template <>
struct Scatter<1> {
  static HWY_INLINE void store(hn::Vec<hn::FixedTag<std::uint8_t, 16>> bytes, std::uint8_t* out) {
    hn::StoreU(bytes, hn::FixedTag<std::uint8_t, 16>(), out);
  }
};
template <int kCount>
struct Scatter {
  static HWY_INLINE void store(hn::Vec<hn::FixedTag<std::uint8_t, kCount * 16>> bytes, std::uint8_t* out) {
    const hn::FixedTag<std::uint8_t, kCount * 8> half;
    Scatter<kCount / 2>::store(hn::LowerHalf(half, bytes), out);
    Scatter<kCount / 2>::store(hn::UpperHalf(half, bytes), out + kCount / 2 * 12);
  }
};

HWY_INLINE VI16 lookup(VU8 bytes, VU8 index) { return hn::BitCast(DI16(), hn::TableLookupBytesOr0(bytes, index)); }

// 0x80: a zero byte, which widens the byte before it to 16 bits
HWY_ALIGN inline constexpr std::uint8_t kRgbTaps01[16] = {0, 0x80, 3, 0x80, 1,    0x80, 4,    0x80,
                                                          2, 0x80, 5, 0x80, 0x80, 0x80, 0x80, 0x80};
HWY_ALIGN inline constexpr std::uint8_t kRgbTaps23[16] = {6, 0x80, 9,  0x80, 7,    0x80, 10,   0x80,
                                                          8, 0x80, 11, 0x80, 0x80, 0x80, 0x80, 0x80};
HWY_ALIGN inline constexpr std::uint8_t kGreyTaps[16] = {0, 0x80, 1, 0x80, 2, 0x80, 3, 0x80,
                                                         4, 0x80, 5, 0x80, 6, 0x80, 7, 0x80};
// Shuffles four RGBx pixels to RGBRGB...
HWY_ALIGN inline constexpr std::uint8_t kDropFourth[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                           10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};

HWY_INLINE VI16 load_weights(const std::int16_t* weights, int vector) {
  return hn::LoadU(DI16(), weights + vector * kLanes16);
}

// Computes one vector of pixels in a run from kPairs pairs of taps, with all values in registers.
template <int kPairs>
HWY_INLINE VI32 few_tap_pixels(const std::uint8_t* in, const std::int32_t* offsets, const std::int16_t* weights) {
  constexpr int kChunkVectors = 4 * 4 * kLanes16;  // distance between chunks of four taps
  VI16 taps[kPairs];
  VI32 sum = hn::Set(DI32(), kHighRound);
  each<kPairs>([&](auto p) FEEDLINE_LANES {
    const VU8 bytes = Gather<kBlocks>::load(in + p / 2 * 12, offsets);
    taps[p] = lookup(bytes, hn::LoadDup128(DU8(), p % 2 ? kRgbTaps23 : kRgbTaps01));
    sum = hn::Add(sum, pair_dot(taps[p], load_weights(weights + p / 2 * kChunkVectors, p % 2 * 2 + 1)));
  });
  sum = hn::ShiftLeft<16>(sum);
  each<kPairs>([&](auto p) FEEDLINE_LANES {
    sum = hn::Add(sum, pair_dot(taps[p], load_weights(weights + p / 2 * kChunkVectors, p % 2 * 2)));
  });
  return hn::ShiftRight<kWeightBits>(sum);
}

// Computes one vector of pixels from any number of chunks of four taps.
HWY_INLINE VI32 many_tap_pixels(const std::uint8_t* in, const std::int32_t* offsets, const std::int16_t* weights,
                                int chunks) {
  const VU8 taps01 = hn::LoadDup128(DU8(), kRgbTaps01);
  const VU8 taps23 = hn::LoadDup128(DU8(), kRgbTaps23);
  VI32 low = hn::Zero(DI32());
  VI32 high = hn::Set(DI32(), kHighRound);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const VU8 bytes = Gather<kBlocks>::load(in + chunk * 12, offsets);
    const VI16 first = lookup(bytes, taps01);
    const VI16 second = lookup(bytes, taps23);
    low = hn::Add(low, pair_dot(first, load_weights(weights, 0)));
    high = hn::Add(high, pair_dot(first, load_weights(weights, 1)));
    low = hn::Add(low, pair_dot(second, load_weights(weights, 2)));
    high = hn::Add(high, pair_dot(second, load_weights(weights, 3)));
    weights += 4 * kLanes16 * 4;
  }
  return combine(low, high);
}

template <int kPairs>  // 0: any number of chunks of four taps
void horizontal_rgb(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  constexpr int kTaps = kPairs == 1 ? 2 : 4;  // of a chunk
  const std::int32_t* offsets = plan.offsets.data();
  const std::int16_t* weights = plan.weights.data();
  const VU8 compact = hn::LoadDup128(DU8(), kDropFourth);
  for (int run = 0; run < plan.groups; ++run) {
    VI32 pixels[4];
    each<4>([&](auto j) FEEDLINE_LANES {
      const std::int32_t* at = offsets + j * kBlocks;
      const std::int16_t* with = weights + j * kTaps * kLanes16;
      if constexpr (kPairs == 0) {
        pixels[j] = many_tap_pixels(in, at, with, plan.chunks);
      } else {
        pixels[j] = few_tap_pixels<kPairs>(in, at, with);
      }
    });
    const VU8 bytes = hn::TableLookupBytesOr0(pack(pixels[0], pixels[1], pixels[2], pixels[3]), compact);
    Scatter<kBlocks>::store(bytes, out);
    offsets += kRunPixels;
    weights += static_cast<std::ptrdiff_t>(plan.chunks) * kTaps * kLanes16 * 4;
    out += kRunPixels * 3;
  }
}

// Each block has four lanes, whose sum is a pixel.
HWY_INLINE VI32 grey_pixels(const std::uint8_t* in, const std::int32_t* offsets, const std::int16_t* weights,
                            int chunks) {
  const VU8 taps = hn::LoadDup128(DU8(), kGreyTaps);
  VI32 low = hn::Zero(DI32());
  VI32 high = hn::Set(DI32(), kHighRound / 4);  // there are four of it
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const VI16 pixels = lookup(Gather<kBlocks>::load(in + chunk * 8, offsets), taps);
    low = hn::Add(low, pair_dot(pixels, load_weights(weights, 0)));
    high = hn::Add(high, pair_dot(pixels, load_weights(weights, 1)));
    weights += 2 * kLanes16 * 4;
  }
  return hn::Add(low, hn::ShiftLeft<16>(high));
}

// Returns a vector in which lane j of each block is the sum of that block's lanes in vector j.
HWY_INLINE VI32 sums_of_blocks(const VI32 (&v)[4]) {
  const DI32 d;
  const auto halves = [d](VI32 a, VI32 b)
                          HWY_ATTR { return hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)); };
  const hn::Repartition<std::int64_t, DI32> pairs;
  const auto a = hn::BitCast(pairs, halves(v[0], v[1])), b = hn::BitCast(pairs, halves(v[2], v[3]));
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, a, b)), hn::BitCast(d, hn::InterleaveUpper(pairs, a, b)));
}

inline void horizontal_grey(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  const std::int32_t* offsets = plan.offsets.data();
  const std::int16_t* weights = plan.weights.data();
  for (int run = 0; run < plan.groups; ++run) {
    VI32 pixels[4];
    each<4>([&](auto j) FEEDLINE_LANES {
      pixels[j] = grey_pixels(in, offsets + j * kBlocks, weights + j * 2 * kLanes16, plan.chunks);
    });
    const hn::Rebind<std::uint8_t, DI32> bytes;
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(sums_of_blocks(pixels))), bytes, out);
    offsets += kRunPixels;
    weights += static_cast<std::ptrdiff_t>(plan.chunks) * 2 * kLanes16 * 4;
    out += kRunPixels;
  }
}

inline void horizontal(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  if (plan.channels == 1) return horizontal_grey(in, plan, out);
  const int taps = plan.table->taps();
  static_assert(kMostFewTaps == 8);
  if (taps <= 2) return horizontal_rgb<1>(in, plan, out);
  if (taps <= 4) return horizontal_rgb<2>(in, plan, out);
  if (taps <= 6) return horizontal_rgb<3>(in, plan, out);
  if (taps <= 8) return horizontal_rgb<4>(in, plan, out);
  horizontal_rgb<0>(in, plan, out);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
