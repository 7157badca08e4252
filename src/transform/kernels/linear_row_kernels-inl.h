// SPDX-License-Identifier: Apache-2.0

// linear_row() for the instruction sets that load many addresses at once.

#if defined(FEEDLINE_TRANSFORM_LINEAR_ROW_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_TRANSFORM_LINEAR_ROW_KERNELS_INL_H_
#undef FEEDLINE_TRANSFORM_LINEAR_ROW_KERNELS_INL_H_
#else
#define FEEDLINE_TRANSFORM_LINEAR_ROW_KERNELS_INL_H_
#endif

#include <cstdint>
#include <type_traits>
#include <utility>

#include "hwy/highway.h"
#include "transform/kernels/linear_row.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

using DVoxels = hn::ScalableTag<float>;
using VVoxels = hn::Vec<DVoxels>;
using DIndexes = hn::RebindToSigned<DVoxels>;
using VIndexes = hn::Vec<DIndexes>;

// The values at `indexes`, and their neighbours along z.
HWY_INLINE std::pair<VVoxels, VVoxels> gather_pairs(const float* volume, VIndexes indexes) {
  const DVoxels d;
  const hn::Repartition<std::int64_t, DVoxels> wide;
  const auto pairs = [&](auto half) HWY_ATTR {
    const auto bytes = hn::ShiftLeft<2>(hn::PromoteTo(wide, half));
    return hn::BitCast(d, hn::GatherOffset(wide, reinterpret_cast<const std::int64_t*>(volume), bytes));
  };
  const hn::Half<DIndexes> half;
  const auto low = pairs(hn::LowerHalf(half, indexes)), high = pairs(hn::UpperHalf(half, indexes));
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
}

HWY_INLINE std::pair<VVoxels, VVoxels> gather_pairs(const std::int16_t* volume, VIndexes indexes) {
  const DVoxels d;
  const DIndexes numbers;
  const auto pairs =
      hn::GatherOffset(numbers, reinterpret_cast<const std::int32_t*>(volume), hn::ShiftLeft<1>(indexes));
  return {hn::ConvertTo(d, hn::ShiftRight<16>(hn::ShiftLeft<16>(pairs))), hn::ConvertTo(d, hn::ShiftRight<16>(pairs))};
}

// One coordinate of the points: the number of the voxel before it, and the share of the next voxel.
HWY_INLINE std::pair<VIndexes, VVoxels> voxel_and_share(float first, float step, VVoxels numbers) {
  const DVoxels d;
  const auto position = hn::Add(hn::Set(d, first), hn::Mul(numbers, hn::Set(d, step)));
  const auto voxel = hn::ConvertTo(DIndexes(), position);
  return {voxel, hn::Sub(position, hn::ConvertTo(d, voxel))};
}

HWY_INLINE VVoxels between(VVoxels from, VVoxels to, VVoxels share) {
  return hn::Add(from, hn::Mul(share, hn::Sub(to, from)));
}

// Requires: the volume has fewer than kMostGathered values.
template <typename T>
void linear_row_gathered(const T* volume, const LinearRow& points, float* out) {
  const DVoxels d;
  const DIndexes indexes;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto plane = hn::Set(indexes, static_cast<std::int32_t>(points.plane));
  const auto row = hn::Set(indexes, static_cast<std::int32_t>(points.row));
  std::int64_t k = points.begin;
  for (; k + kLanes <= points.end; k += kLanes) {
    const auto numbers = hn::ConvertTo(d, hn::Iota(indexes, static_cast<std::int32_t>(k)));
    const auto [x, wx] = voxel_and_share(points.first[0], points.step[0], numbers);
    const auto [y, wy] = voxel_and_share(points.first[1], points.step[1], numbers);
    const auto [z, wz] = voxel_and_share(points.first[2], points.step[2], numbers);
    const auto at = hn::Add(hn::Add(hn::Mul(x, plane), hn::Mul(y, row)), z);
    const auto [near0, near1] = gather_pairs(volume, at);
    const auto [below0, below1] = gather_pairs(volume + points.row, at);
    const auto [next0, next1] = gather_pairs(volume + points.plane, at);
    const auto [far0, far1] = gather_pairs(volume + points.plane + points.row, at);
    const auto c0 = between(between(near0, below0, wy), between(next0, far0, wy), wx);
    const auto c1 = between(between(near1, below1, wy), between(next1, far1, wy), wx);
    hn::StoreU(between(c0, c1, wz), d, out + k);
  }
  LinearRow rest = points;
  rest.begin = k;
  linear_row(volume, rest, out);
}

#else

template <typename T>
void linear_row_gathered(const T* volume, const LinearRow& points, float* out) {
  linear_row(volume, points, out);
}

#endif

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
