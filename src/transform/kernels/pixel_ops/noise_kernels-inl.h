// SPDX-License-Identifier: Apache-2.0

// Kernels for normal numbers and for weighted sums of images. Multiplications and additions are not fused, so that the
// bits equal those of the scalar kernels. A Philox word occupies the lower half of a 64-bit lane, so that a round needs
// no shuffles; the upper half is ignored.

#if defined(FEEDLINE_PIXEL_OPS_NOISE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_NOISE_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_NOISE_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_NOISE_KERNELS_INL_H_
#endif

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/pixel_ops/normals.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DNoise = hn::Repartition<float, DI32>;
using DWord = hn::Repartition<std::uint32_t, DI32>;
using DWide = hn::Repartition<std::uint64_t, DI32>;
using VNoise = hn::Vec<DNoise>;
using VWord = hn::Vec<DWord>;
using VWide = hn::Vec<DWide>;
inline constexpr std::size_t kNoiseLanes = kBytes / 4;

HWY_INLINE VWide times(VWide a, std::uint32_t b) {
  const DWord d;
  return hn::MulEven(hn::BitCast(d, a), hn::Set(d, b));
}

// Computes the words of the blocks whose numbers are in `counter[0]`.
HWY_INLINE void philox(const base::Random::Blocks& blocks, VWide (&counter)[4]) {
  const DWide d;
  const auto philox_round = [&](int i) FEEDLINE_LANES {
    const auto n = static_cast<std::uint32_t>(i);
    const VWide first = times(counter[0], base::kPhiloxMultipliers[0]);
    const VWide second = times(counter[2], base::kPhiloxMultipliers[1]);
    const VWide key0 = hn::Set(d, blocks.key[0] + n * base::kPhiloxWeyl[0]);
    const VWide key1 = hn::Set(d, blocks.key[1] + n * base::kPhiloxWeyl[1]);
    counter[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(second), counter[1]), key0);
    counter[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(first), counter[3]), key1);
    counter[1] = second;
    counter[3] = first;
  };
  for (int i = 0; i < base::kPhiloxRounds; ++i) philox_round(i);
}

template <std::size_t kCount>
HWY_INLINE VNoise evaluate(const float (&factors)[kCount], VNoise x) {
  const DNoise d;
  VNoise sum = hn::Set(d, factors[0]);
  for (std::size_t i = 1; i < kCount; ++i) sum = hn::Add(hn::Mul(sum, x), hn::Set(d, factors[i]));
  return sum;
}

HWY_INLINE void to_normals(VWord first, VWord second, float* out, std::size_t apart) {
  const DNoise d;
  const DI32 di;
  const DWord du;
  const VNoise whole = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(first)));
  const VNoise uniform = hn::Mul(hn::Add(whole, hn::Set(d, 1.0f)), hn::Set(d, 0x1p-31f));
  const auto bits = hn::BitCast(di, uniform);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, normals::kRootHalf)));
  const VNoise f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0f));
  const VNoise logarithm = hn::Add(hn::Mul(evaluate(normals::kLog, f), f),
                                   hn::Mul(hn::ConvertTo(d, exponent), hn::Set(d, normals::kLogOf2)));
  const VNoise radius = hn::Sqrt(hn::Mul(logarithm, hn::Set(d, -2.0f)));
  const VNoise point = hn::ConvertTo(d, hn::BitCast(di, hn::And(second, hn::Set(du, normals::kPlaceMask))));
  const VNoise x = hn::Sub(hn::Mul(point, hn::Set(d, 0x1p-30f)), hn::Set(d, 0.5f));
  const VNoise square = hn::Mul(x, x);
  const VNoise across = hn::Mul(radius, hn::Mul(evaluate(normals::kSine, square), x));
  const VNoise turned = hn::BitCast(d, hn::And(second, hn::Set(du, normals::kSignBit)));
  const VNoise along = hn::Xor(hn::Mul(radius, evaluate(normals::kCosine, square)), turned);
  const auto in_order = hn::RebindMask(d, hn::Eq(hn::And(second, hn::Set(du, normals::kSwapBit)), hn::Zero(du)));
  hn::StoreU(hn::IfThenElse(in_order, along, across), d, out);
  hn::StoreU(hn::IfThenElse(in_order, across, along), d, out + apart);
}

inline void normals_of(const base::Random::Blocks& blocks, std::size_t groups, float* out) {
  const DWide d;
  const DWord du;
  const auto start = [&](std::uint32_t number, VWide(&counter)[4]) FEEDLINE_LANES {
    counter[0] = hn::Add(hn::Set(d, number), hn::ShiftLeft<1>(hn::Iota(d, 0)));
    for (std::size_t i = 1; i < 4; ++i) counter[i] = hn::Set(d, blocks.counter[i]);
    philox(blocks, counter);
  };
  for (std::size_t first = 0; first < groups * kGroupBlocks; first += kNoiseLanes) {
    const std::uint32_t number = blocks.counter[0] + static_cast<std::uint32_t>(first);
    VWide even[4], odd[4];  // blocks
    start(number, even);
    start(number + 1, odd);
    VWord words[4];
    for (int i = 0; i < 4; ++i)
      words[i] = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(odd[i])), hn::BitCast(du, even[i]));
    float* const to = out + first / kGroupBlocks * kGroupNormals + first % kGroupBlocks;
    to_normals(words[0], words[1], to, kGroupBlocks);
    to_normals(words[2], words[3], to + 2 * kGroupBlocks, kGroupBlocks);
  }
}

inline void weigh(const std::uint8_t* in, std::size_t count, float weight, float* out) {
  const DNoise d;
  const hn::Rebind<std::uint8_t, DNoise> bytes;
  const VNoise by = hn::Set(d, weight);
  std::size_t i = 0;
  for (; i + kNoiseLanes <= count; i += kNoiseLanes)
    hn::StoreU(hn::Mul(by, hn::ConvertTo(d, hn::PromoteTo(DI32(), hn::LoadU(bytes, in + i)))), d, out + i);
  for (; i < count; ++i) out[i] = weight * in[i];
}

inline void add_weighed(const std::uint8_t* in, std::size_t count, float weight, float* out) {
  const DNoise d;
  const hn::Rebind<std::uint8_t, DNoise> bytes;
  const VNoise by = hn::Set(d, weight);
  std::size_t i = 0;
  for (; i + kNoiseLanes <= count; i += kNoiseLanes) {
    const VNoise product = hn::Mul(by, hn::ConvertTo(d, hn::PromoteTo(DI32(), hn::LoadU(bytes, in + i))));
    hn::StoreU(hn::Add(hn::LoadU(d, out + i), product), d, out + i);
  }
  for (; i < count; ++i) out[i] = out[i] + weight * in[i];
}

inline void truncate(const float* in, std::size_t count, std::uint8_t* out) {
  const DNoise d;
  const hn::Rebind<std::uint8_t, DNoise> bytes;
  std::size_t i = 0;
  for (; i + kNoiseLanes <= count; i += kNoiseLanes)
    hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(DI32(), hn::LoadU(d, in + i))), bytes, out + i);
  if (i < count) kScalarPixelKernels.truncate(in + i, count - i, out + i);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
