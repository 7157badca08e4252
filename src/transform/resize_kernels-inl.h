// SPDX-License-Identifier: Apache-2.0

// The two passes of a resize, exact in 16-bit multiplications.
//
// A weight has 22 fractional bits: too many for the 16-bit multiply-and-add that vector units are fast at. It is cut
// in two, weight = high * 65536 + low with low in [-32768, 32767], so that high lies in [-65, 65]. Then
//
//   sum of pixel * weight = (sum of pixel * high) * 65536 + sum of pixel * low
//
// where each product has at most 8 + 16 bits and each pair of products fits 32 bits. Sums over many taps may wrap;
// they wrap modulo 2^32, as does the recombination, and the true sum fits an int32 (Pillow accumulates in one): so
// the result is exact.

#if defined(FEEDLINE_TRANSFORM_RESIZE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_RESIZE_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_RESIZE_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_RESIZE_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "transform/kernels.h"
#include "transform/lanes-inl.h"

#if HWY_TARGET != HWY_SCALAR  // which has one lane: the plain kernels serve
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int32_t kRound = 1 << (kWeightBits - 1);
inline constexpr int kLanes16 = kBlocks * 8;    // 16-bit lanes of a vector
inline constexpr int kRunPixels = kBlocks * 4;  // output pixels of one turn: four vectors, a pixel per block

// [low of a, low of b] and [high of a, high of b] as the two halves of a 32-bit lane.
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

// Two sums of one lane, low and high parts, to the pixel value before saturation.
HWY_INLINE VI32 combine(VI32 low, VI32 high) {
  return hn::ShiftRight<kWeightBits>(hn::Add(low, hn::ShiftLeft<16>(high)));
}

// ---- horizontal pass
//
// Each 128-bit block of a vector makes one output pixel: 16 source bytes from its first tap on, byte lookups that
// bring the taps of a channel side by side, products, sums. Blocks of vector j (0..3) of a run make its pixels
// 4 * block + j, so that after packing each block holds four neighbours.
//
// RowPlan::weights, 3 channels:  [run][chunk of 4 taps][vector j] { taps 0,1 low | high | taps 2,3 low | high }
//                                each part a whole vector: per block the pair repeated for the four lanes
// RowPlan::weights, 1 channel:   [run][chunk of 8 taps][vector j] { low of 8 taps per block | high }
// RowPlan::offsets:              [run][vector j][block], bytes

inline int taps_per_chunk(const RowPlan& plan) { return plan.channels == 3 ? (plan.table->taps() <= 2 ? 2 : 4) : 8; }

inline int vectors_per_chunk(const RowPlan& plan) { return plan.channels == 3 ? taps_per_chunk(plan) : 2; }

// Writes the weights of one output pixel for one chunk into its block of the `parts` vectors at `at`.
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
  const int width = plan.chunks * per_chunk;  // taps that are read, the last ones with weight 0
  plan.offsets.resize(static_cast<std::size_t>(plan.groups) * kRunPixels);
  plan.weights.resize(plan.offsets.size() * static_cast<std::size_t>(plan.chunks * parts * 8));
  std::vector<std::int32_t>& taps = plan.scratch;
  taps.resize(static_cast<std::size_t>(width));
  for (int i = 0; i < plan.groups * kRunPixels; ++i) {
    const int run = i / kRunPixels, pixel = i % kRunPixels, vector = pixel % 4, block = pixel / 4;
    const int source = std::min(i, table.count() - 1);  // past the end: the last pixel again, never stored
    // Start further left where the row ends, so that no read goes far past it.
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

// Block b of the result: the 16 bytes at in + offsets[b].
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

HWY_INLINE VI16 lookup(VU8 bytes, VU8 index) { return hn::BitCast(DI16(), hn::TableLookupBytesOr0(bytes, index)); }

// 0x80: a zero byte, which widens the byte before it to 16 bits
HWY_ALIGN inline constexpr std::uint8_t kRgbTaps01[16] = {0, 0x80, 3, 0x80, 1,    0x80, 4,    0x80,
                                                          2, 0x80, 5, 0x80, 0x80, 0x80, 0x80, 0x80};
HWY_ALIGN inline constexpr std::uint8_t kRgbTaps23[16] = {6, 0x80, 9,  0x80, 7,    0x80, 10,   0x80,
                                                          8, 0x80, 11, 0x80, 0x80, 0x80, 0x80, 0x80};
HWY_ALIGN inline constexpr std::uint8_t kGreyTaps[16] = {0, 0x80, 1, 0x80, 2, 0x80, 3, 0x80,
                                                         4, 0x80, 5, 0x80, 6, 0x80, 7, 0x80};
// four RGBx pixels to RGBRGB...
HWY_ALIGN inline constexpr std::uint8_t kDropFourth[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                           10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};

HWY_INLINE VI16 load_weights(const std::int16_t* weights, int vector) {
  return hn::LoadU(DI16(), weights + vector * kLanes16);
}

// One vector of pixels of a run: all chunks.
template <int kTaps>
HWY_INLINE VI32 rgb_pixels(const std::uint8_t* in, const std::int32_t* offsets, const std::int16_t* weights,
                           int chunks) {
  const VU8 taps01 = hn::LoadDup128(DU8(), kRgbTaps01);
  const VU8 taps23 = hn::LoadDup128(DU8(), kRgbTaps23);
  VI32 low = hn::Set(DI32(), kRound);
  VI32 high = hn::Zero(DI32());
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const VU8 bytes = Gather<kBlocks>::load(in + chunk * kTaps * 3, offsets);
    const VI16 first = lookup(bytes, taps01);
    low = hn::Add(low, pair_dot(first, load_weights(weights, 0)));
    high = hn::Add(high, pair_dot(first, load_weights(weights, 1)));
    if constexpr (kTaps == 4) {
      const VI16 second = lookup(bytes, taps23);
      low = hn::Add(low, pair_dot(second, load_weights(weights, 2)));
      high = hn::Add(high, pair_dot(second, load_weights(weights, 3)));
    }
    weights += kTaps * kLanes16 * 4;
  }
  return combine(low, high);
}

template <int kTaps, int kChunks>  // kChunks 0: as the plan says
void horizontal_rgb(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  const int chunks = kChunks ? kChunks : plan.chunks;
  const std::int32_t* offsets = plan.offsets.data();
  const std::int16_t* weights = plan.weights.data();
  const VU8 compact = hn::LoadDup128(DU8(), kDropFourth);
  for (int run = 0; run < plan.groups; ++run) {
    VI32 pixels[4];
    for (int j = 0; j < 4; ++j)
      pixels[j] = rgb_pixels<kTaps>(in, offsets + j * kBlocks, weights + j * kTaps * kLanes16, chunks);
    const VU8 bytes = hn::TableLookupBytesOr0(pack(pixels[0], pixels[1], pixels[2], pixels[3]), compact);
    HWY_ALIGN std::uint8_t stored[kBlocks * 16];
    hn::Store(bytes, DU8(), stored);
    for (int b = 0; b < kBlocks; ++b) std::memcpy(out + b * 12, stored + b * 16, 16);
    offsets += kRunPixels;
    weights += static_cast<std::ptrdiff_t>(chunks) * kTaps * kLanes16 * 4;
    out += kRunPixels * 3;
  }
}

HWY_INLINE VI32 grey_pixels(const std::uint8_t* in, const std::int32_t* offsets, const std::int16_t* weights,
                            int chunks) {
  const VU8 taps = hn::LoadDup128(DU8(), kGreyTaps);
  VI32 low = hn::Zero(DI32());
  VI32 high = hn::Zero(DI32());
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const VI16 pixels = lookup(Gather<kBlocks>::load(in + chunk * 8, offsets), taps);
    low = hn::Add(low, pair_dot(pixels, load_weights(weights, 0)));
    high = hn::Add(high, pair_dot(pixels, load_weights(weights, 1)));
    weights += 2 * kLanes16 * 4;
  }
  VI32 sum = hn::Add(low, hn::ShiftLeft<16>(high));
  sum = hn::Add(sum, hn::Shuffle1032(sum));
  sum = hn::Add(sum, hn::Shuffle2301(sum));  // each lane of a block: the whole sum
  return hn::ShiftRight<kWeightBits>(hn::Add(sum, hn::Set(DI32(), kRound)));
}

inline void horizontal_grey(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  const std::int32_t* offsets = plan.offsets.data();
  const std::int16_t* weights = plan.weights.data();
  for (int run = 0; run < plan.groups; ++run) {
    VI32 pixels[4];
    for (int j = 0; j < 4; ++j)
      pixels[j] = grey_pixels(in, offsets + j * kBlocks, weights + j * 2 * kLanes16, plan.chunks);
    HWY_ALIGN std::uint8_t stored[kBlocks * 16];  // per block: 4 x pixel 0, 4 x pixel 1, ...
    hn::Store(pack(pixels[0], pixels[1], pixels[2], pixels[3]), DU8(), stored);
    for (int i = 0; i < kRunPixels; ++i) out[i] = stored[i * 4];
    offsets += kRunPixels;
    weights += static_cast<std::ptrdiff_t>(plan.chunks) * 2 * kLanes16 * 4;
    out += kRunPixels;
  }
}

inline void horizontal(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  if (plan.channels == 1) return horizontal_grey(in, plan, out);
  if (plan.table->taps() <= 2) return horizontal_rgb<2, 1>(in, plan, out);
  plan.chunks == 1 ? horizontal_rgb<4, 1>(in, plan, out) : horizontal_rgb<4, 0>(in, plan, out);
}

// ---- vertical pass
//
// The bytes of two rows interleaved and widened to 16 bits are the pairs of the multiplication; interleaving within
// blocks on the way in is what packing within blocks undoes on the way out.

struct ColumnSums {
  VI32 low[4], high[4];
};

HWY_INLINE void add_rows(const std::uint8_t* a, const std::uint8_t* b, VI16 low, VI16 high, ColumnSums& sums) {
  const DU8 d;
  const VU8 zero = hn::Zero(d);
  const VU8 first = hn::LoadU(d, a);
  const VU8 second = hn::LoadU(d, b);
  const VU8 lower = hn::InterleaveLower(d, first, second);
  const VU8 upper = hn::InterleaveUpper(d, first, second);
  const VI16 pairs[4] = {hn::BitCast(DI16(), hn::InterleaveLower(d, lower, zero)),
                         hn::BitCast(DI16(), hn::InterleaveUpper(d, lower, zero)),
                         hn::BitCast(DI16(), hn::InterleaveLower(d, upper, zero)),
                         hn::BitCast(DI16(), hn::InterleaveUpper(d, upper, zero))};
  for (int i = 0; i < 4; ++i) {
    sums.low[i] = hn::Add(sums.low[i], pair_dot(pairs[i], low));
    sums.high[i] = hn::Add(sums.high[i], pair_dot(pairs[i], high));
  }
}

template <int kTaps>  // 0: any number
void vertical_pass(const std::uint8_t* const* rows, const std::int32_t* weights, int any_taps, std::size_t bytes,
                   std::uint8_t* out) {
  const int taps = kTaps ? kTaps : any_taps;
  for (std::size_t i = 0; i < bytes; i += kBytes) {
    ColumnSums sums;
    for (int j = 0; j < 4; ++j) {
      sums.low[j] = hn::Set(DI32(), kRound);
      sums.high[j] = hn::Zero(DI32());
    }
    for (int t = 0; t < taps; t += 2) {
      const bool last = t + 1 == taps;
      const WeightPair pair = weight_pair(weights[t], last ? 0 : weights[t + 1]);
      add_rows(rows[t] + i, rows[last ? t : t + 1] + i, hn::BitCast(DI16(), hn::Set(DI32(), pair.low)),
               hn::BitCast(DI16(), hn::Set(DI32(), pair.high)), sums);
    }
    for (int j = 0; j < 4; ++j) sums.low[j] = combine(sums.low[j], sums.high[j]);
    hn::StoreU(pack(sums.low[0], sums.low[1], sums.low[2], sums.low[3]), DU8(), out + i);
  }
}

inline void vertical(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
                     std::uint8_t* out) {
  switch (taps) {
    case 1:
      return vertical_pass<1>(rows, weights, taps, bytes, out);
    case 2:
      return vertical_pass<2>(rows, weights, taps, bytes, out);
    case 3:
      return vertical_pass<3>(rows, weights, taps, bytes, out);
    case 4:
      return vertical_pass<4>(rows, weights, taps, bytes, out);
    default:
      return vertical_pass<0>(rows, weights, taps, bytes, out);
  }
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
