// SPDX-License-Identifier: Apache-2.0

// The horizontal pass where a vector can be permuted by single bytes (AVX-512 VBMI). A group of 16 samples, which is
// 5 1/3 pixels, is one vector of 32-bit lanes: its taps all lie within 64 source bytes, and one permutation brings
// each lane its two taps of a pair, widened to 16 bits. The next pair is 6 bytes further on for every lane, so the
// same permutation serves it.
//
// RowPlan::offsets:  [group] bytes, where its 64 source bytes start
// RowPlan::lookups:  [group][lane] four byte indices: tap, unused, next tap, unused
// RowPlan::weights:  [group][pair] { low halves, 16 lanes of two | high halves }

#if defined(FEEDLINE_TRANSFORM_HORIZONTAL_PERMUTED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_HORIZONTAL_PERMUTED_INL_H_
#undef FEEDLINE_TRANSFORM_HORIZONTAL_PERMUTED_INL_H_
#else
#define FEEDLINE_TRANSFORM_HORIZONTAL_PERMUTED_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "transform/horizontal_kernels-inl.h"
#include "transform/kernels.h"
#include "transform/lanes-inl.h"
#include "transform/weight_halves-inl.h"

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kGroupSamples = 16;
inline constexpr int kGroupsPerTurn = 4;  // which fill one vector of bytes

// Leftmost source pixel that is read for output pixel i: not so far right that the row would end before its pairs.
inline int first_read(const RowPlan& plan, int i, int width) {
  return std::min(plan.table->first(i), std::max(0, plan.in_width - width));
}

// Can every group's taps be reached in 64 bytes? False where the image shrinks more than about three times.
inline bool can_permute(const RowPlan& plan, int width) {
  const AxisTable& table = *plan.table;
  if (plan.channels != 3 || table.taps() > kMostFewTaps) return false;
  for (int sample = 0; sample < table.count() * 3; sample += kGroupSamples) {
    const int a = first_read(plan, sample / 3, width);
    const int b = first_read(plan, std::min(sample + kGroupSamples - 1, table.count() * 3 - 1) / 3, width);
    if (std::abs(b - a) * 3 + 2 + 3 > 63) return false;
  }
  return true;
}

inline void plan_permuted(RowPlan& plan, int pairs) {
  const AxisTable& table = *plan.table;
  const int samples = table.count() * 3;
  const int width = pairs * 2;
  plan.groups = (samples + kGroupSamples * kGroupsPerTurn - 1) / (kGroupSamples * kGroupsPerTurn) * kGroupsPerTurn;
  const auto groups = static_cast<std::size_t>(plan.groups);
  plan.offsets.resize(groups);
  plan.lookups.resize(groups * kGroupSamples);
  plan.weights.resize(groups * static_cast<std::size_t>(pairs) * 64);
  plan.scratch.resize(static_cast<std::size_t>(width));
  WeightPair halves[kMostFewTaps / 2] = {};
  int planned = -1;  // the output pixel that halves and first belong to
  int first = 0;
  for (int sample = 0; sample < plan.groups * kGroupSamples; ++sample) {
    const int i = std::min(sample / 3, table.count() - 1);  // past the end: never stored
    const int group = sample / kGroupSamples, lane = sample % kGroupSamples;
    if (lane == 0) {
      const int last = std::min((sample + kGroupSamples - 1) / 3, table.count() - 1);
      plan.offsets[static_cast<std::size_t>(group)] =
          std::min(first_read(plan, i, width), first_read(plan, last, width)) * 3;
    }
    if (i != planned) {
      first = first_read(plan, i, width);
      std::fill(plan.scratch.begin(), plan.scratch.end(), 0);
      std::copy_n(table.weights(i), table.used(i), plan.scratch.begin() + (table.first(i) - first));
      for (int p = 0; p < pairs; ++p)
        halves[p] = weight_pair(plan.scratch[static_cast<std::size_t>(p * 2)],
                                plan.scratch[static_cast<std::size_t>(p * 2 + 1)]);
      planned = i;
    }
    const int at = first * 3 + sample % 3 - plan.offsets[static_cast<std::size_t>(group)];
    plan.lookups[static_cast<std::size_t>(sample)] = at | (at + 3) << 16;
    for (int p = 0; p < pairs; ++p) {
      std::int16_t* to = plan.weights.data() + (group * pairs + p) * 64 + lane * 2;
      std::memcpy(to, &halves[p].low, 4);
      std::memcpy(to + 32, &halves[p].high, 4);
    }
  }
}

HWY_INLINE VI16 permuted(VU8 bytes, VU8 index) {
  constexpr __mmask64 kEvenBytes = 0x5555555555555555u;  // the odd ones become zero
  return VI16{_mm512_maskz_permutexvar_epi8(kEvenBytes, index.raw, bytes.raw)};
}

template <int kPairs>
HWY_INLINE VI32 group_sums(const std::uint8_t* in, const std::int32_t* lookups, const std::int16_t* weights) {
  const VU8 index = hn::BitCast(DU8(), hn::LoadU(DI32(), lookups));
  VI16 taps[kPairs];
  VI32 sum = hn::Set(DI32(), kHighRound);
  each<kPairs>([&](auto p) FEEDLINE_LANES {
    taps[p] = permuted(hn::LoadU(DU8(), in + p * 6), index);
    sum = hn::Add(sum, pair_dot(taps[p], load_weights(weights, p * 2 + 1)));
  });
  sum = hn::ShiftLeft<16>(sum);
  each<kPairs>([&](auto p) FEEDLINE_LANES { sum = hn::Add(sum, pair_dot(taps[p], load_weights(weights, p * 2))); });
  return hn::ShiftRight<kWeightBits>(sum);
}

// packing interleaves the four groups' runs of four samples; this puts each group's runs together
HWY_ALIGN inline constexpr std::int32_t kTransposeRuns[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};

template <int kPairs>
void horizontal_permuted(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  const std::int32_t* offsets = plan.offsets.data();
  const std::int32_t* lookups = plan.lookups.data();
  const std::int16_t* weights = plan.weights.data();
  const VI32 runs = hn::Load(DI32(), kTransposeRuns);
  for (int group = 0; group < plan.groups; group += kGroupsPerTurn) {
    VI32 sums[kGroupsPerTurn];
    each<kGroupsPerTurn>([&](auto j) FEEDLINE_LANES {
      sums[j] = group_sums<kPairs>(in + offsets[j], lookups + j * kGroupSamples, weights + j * kPairs * 64);
    });
    const VU8 bytes = pack(sums[0], sums[1], sums[2], sums[3]);
    hn::StoreU(VU8{_mm512_permutexvar_epi32(runs.raw, bytes.raw)}, DU8(), out);
    offsets += kGroupsPerTurn;
    lookups += kGroupsPerTurn * kGroupSamples;
    weights += kGroupsPerTurn * kPairs * 64;
    out += kGroupsPerTurn * kGroupSamples;
  }
}

inline void plan_row_permuted(RowPlan& plan) {
  const int pairs = (plan.table->taps() + 1) / 2;
  plan.permuted = can_permute(plan, pairs * 2);
  plan.permuted ? plan_permuted(plan, pairs) : plan_row(plan);
}

inline void horizontal_or_permuted(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) {
  if (!plan.permuted) return horizontal(in, plan, out);
  const int taps = plan.table->taps();
  if (taps <= 2) return horizontal_permuted<1>(in, plan, out);
  if (taps <= 4) return horizontal_permuted<2>(in, plan, out);
  if (taps <= 6) return horizontal_permuted<3>(in, plan, out);
  horizontal_permuted<4>(in, plan, out);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
