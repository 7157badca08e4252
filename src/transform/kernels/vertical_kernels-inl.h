// SPDX-License-Identifier: Apache-2.0

// The vertical pass of a resize. Interleaves the bytes of two rows, and widens them to 16 bits, as pairs for the
// multiplication. Bytes are interleaved within blocks; packing within blocks restores their order.

#if defined(FEEDLINE_TRANSFORM_VERTICAL_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_VERTICAL_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_VERTICAL_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_VERTICAL_KERNELS_INL_H_
#endif

#include "hwy/highway.h"
#include "transform/kernels/kernels.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/weight_halves-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Computes column sums of a vector's bytes in the lanes of four vectors, in an order that pack() reverses.
template <int kQuarter>
HWY_INLINE VI16 widened(VU8 lower, VU8 upper) {
  const VU8 half = kQuarter < 2 ? lower : upper;
  const VU8 zero = hn::Zero(DU8());
  return hn::BitCast(
      DI16(), kQuarter % 2 == 0 ? hn::InterleaveLower(DU8(), half, zero) : hn::InterleaveUpper(DU8(), half, zero));
}

// For at most 2 * kPairs rows, with all values in registers.
template <int kPairs>
void few_rows(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
              std::uint8_t* out) {
  const std::uint8_t* row[kPairs * 2];
  VI16 low[kPairs], high[kPairs];
  each<kPairs>([&](auto p) FEEDLINE_LANES {
    const bool odd = p * 2 + 1 == taps;  // without a second row, repeats the first with weight 0
    row[p * 2] = rows[p * 2];
    row[p * 2 + 1] = rows[odd ? p * 2 : p * 2 + 1];
    const WeightPair pair = weight_pair(weights[p * 2], odd ? 0 : weights[p * 2 + 1]);
    low[p] = hn::BitCast(DI16(), hn::Set(DI32(), pair.low));
    high[p] = hn::BitCast(DI16(), hn::Set(DI32(), pair.high));
  });
  for (std::size_t i = 0; i < bytes; i += kBytes) {
    VU8 lower[kPairs], upper[kPairs];
    each<kPairs>([&](auto p) FEEDLINE_LANES {
      const VU8 first = hn::LoadU(DU8(), row[p * 2] + i);
      const VU8 second = hn::LoadU(DU8(), row[p * 2 + 1] + i);
      lower[p] = hn::InterleaveLower(DU8(), first, second);
      upper[p] = hn::InterleaveUpper(DU8(), first, second);
    });
    VI32 sums[4];
    each<4>([&](auto quarter) FEEDLINE_LANES {
      VI16 pixels[kPairs];
      VI32 sum = hn::Set(DI32(), kHighRound);
      each<kPairs>([&](auto p) FEEDLINE_LANES {
        pixels[p] = widened<quarter>(lower[p], upper[p]);
        sum = hn::Add(sum, pair_dot(pixels[p], high[p]));
      });
      sum = hn::ShiftLeft<16>(sum);
      each<kPairs>([&](auto p) FEEDLINE_LANES { sum = hn::Add(sum, pair_dot(pixels[p], low[p])); });
      sums[quarter] = hn::ShiftRight<kWeightBits>(sum);
    });
    hn::StoreU(pack(sums[0], sums[1], sums[2], sums[3]), DU8(), out + i);
  }
}

struct ColumnSums {
  VI32 low[4], high[4];
};

HWY_INLINE void add_rows(const std::uint8_t* a, const std::uint8_t* b, VI16 low, VI16 high, ColumnSums& sums) {
  const DU8 d;
  const VU8 first = hn::LoadU(d, a);
  const VU8 second = hn::LoadU(d, b);
  const VU8 lower = hn::InterleaveLower(d, first, second);
  const VU8 upper = hn::InterleaveUpper(d, first, second);
  const VI16 pairs[4] = {widened<0>(lower, upper), widened<1>(lower, upper), widened<2>(lower, upper),
                         widened<3>(lower, upper)};
  each<4>([&](auto i) FEEDLINE_LANES {
    sums.low[i] = hn::Add(sums.low[i], pair_dot(pairs[i], low));
    sums.high[i] = hn::Add(sums.high[i], pair_dot(pairs[i], high));
  });
}

inline void many_rows(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
                      std::uint8_t* out) {
  for (std::size_t i = 0; i < bytes; i += kBytes) {
    ColumnSums sums;
    each<4>([&](auto j) FEEDLINE_LANES {
      sums.low[j] = hn::Zero(DI32());
      sums.high[j] = hn::Set(DI32(), kHighRound);
    });
    for (int t = 0; t < taps; t += 2) {
      const bool odd = t + 1 == taps;
      const WeightPair pair = weight_pair(weights[t], odd ? 0 : weights[t + 1]);
      add_rows(rows[t] + i, rows[odd ? t : t + 1] + i, hn::BitCast(DI16(), hn::Set(DI32(), pair.low)),
               hn::BitCast(DI16(), hn::Set(DI32(), pair.high)), sums);
    }
    each<4>([&](auto j) FEEDLINE_LANES { sums.low[j] = combine(sums.low[j], sums.high[j]); });
    hn::StoreU(pack(sums.low[0], sums.low[1], sums.low[2], sums.low[3]), DU8(), out + i);
  }
}

inline void vertical(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
                     std::uint8_t* out) {
  if (taps <= 2) return few_rows<1>(rows, weights, taps, bytes, out);
  if (taps <= 4) return few_rows<2>(rows, weights, taps, bytes, out);
  if (taps <= 6) return few_rows<3>(rows, weights, taps, bytes, out);
  if (taps <= 8) return few_rows<4>(rows, weights, taps, bytes, out);
  many_rows(rows, weights, taps, bytes, out);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
