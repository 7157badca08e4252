// SPDX-License-Identifier: Apache-2.0

// Looks up byte tables with shuffles, and finds the range of a row's bytes.

#if defined(FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pixel_ops/steps-inl.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Divides a table of 256 bytes into 16 tables of 16 bytes. A byte is looked up in each table that starts at or below
// it, and each table contains the exclusive-or of its values and those in the previous table. The lower half of the
// bytes starts at the lowest signed number, so that a byte of the upper half is below all tables of the lower half.
class TableLanes {
 public:
  explicit HWY_INLINE TableLanes(const ByteTable& table) {
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 16; ++k) {
        const int before = i % 8 == 0 ? 0 : table[(i - 1) * 16 + k];
        steps_[i][k] = static_cast<std::uint8_t>(table[i * 16 + k] ^ before);
      }
  }

  template <int kCount>
  HWY_INLINE void look_up(VU8 (&bytes)[kCount]) const {
    const DU8 d;
    const hn::Repartition<std::int8_t, DU8> ds;
    VU8 found[kCount];
    each<kCount>([&](auto n) FEEDLINE_LANES { found[n] = hn::Zero(d); });
    each<2>([&](auto half) FEEDLINE_LANES {
      each<8>([&](auto i) FEEDLINE_LANES {
        const VU8 steps = hn::LoadDup128(d, steps_[half * 8 + i]);
        each<kCount>([&](auto n) FEEDLINE_LANES {
          const VU8 points = hn::BitCast(
              d, hn::SaturatedSub(hn::BitCast(ds, bytes[n]), hn::Set(ds, static_cast<std::int8_t>(16 * i))));
          found[n] = hn::Xor(found[n], hn::TableLookupBytesOr0(steps, within_16(points)));
        });
      });
      each<kCount>([&](auto n) FEEDLINE_LANES { bytes[n] = hn::Xor(bytes[n], hn::Set(d, 0x80)); });
    });
    each<kCount>([&](auto n) FEEDLINE_LANES { bytes[n] = found[n]; });
  }

 private:
  // The result for an index from 16 to 127 is unspecified: x86 shuffles use its low 4 bits, other shuffles return 0.
  static HWY_INLINE VU8 within_16(VU8 points) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SSE2 && HWY_TARGET != HWY_EMU128
    return points;
#else
    return hn::And(points, hn::Set(DU8(), 0x8F));
#endif
  }

  alignas(16) std::uint8_t steps_[16][16];
};

inline void look_up(const memory::PixelView& in, const ByteTable& table, std::uint8_t* out, std::size_t stride) {
  const DU8 d;
  const TableLanes lanes(table);
  const auto step = [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    VU8 bytes[2] = {hn::LoadU(d, from), hn::LoadU(d, from + kBytes)};
    lanes.look_up(bytes);
    hn::StoreU(bytes[0], d, to);
    hn::StoreU(bytes[1], d, to + kBytes);
  };
  const auto count = static_cast<std::size_t>(in.width) * static_cast<std::size_t>(in.channels);
  for (int y = 0; y < in.height; ++y, out += stride) in_steps<2 * kBytes>(in.row(y), count, out, step);
}

inline void look_up_rgb(const memory::PixelView& in, const ByteTable* tables, std::uint8_t* out, std::size_t stride) {
  const DU8 d;
  const TableLanes lanes[3] = {TableLanes(tables[0]), TableLanes(tables[1]), TableLanes(tables[2])};
  const auto step = [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    VU8 channels[3][1];
    hn::LoadInterleaved3(d, from, channels[0][0], channels[1][0], channels[2][0]);
    each<3>([&](auto c) FEEDLINE_LANES { lanes[c].look_up(channels[c]); });
    hn::StoreInterleaved3(channels[0][0], channels[1][0], channels[2][0], d, to);
  };
  const std::size_t count = 3 * static_cast<std::size_t>(in.width);
  for (int y = 0; y < in.height; ++y, out += stride) in_steps<kRgbStep>(in.row(y), count, out, step);
}

inline void fold(const std::uint8_t* in, std::size_t count, std::uint8_t threshold, std::uint8_t flip,
                 std::uint8_t mask, std::uint8_t* out) {
  const DU8 d;
  const VU8 thresholds = hn::Set(d, threshold), flips = hn::Set(d, flip), masks = hn::Set(d, mask);
  in_steps<kBytes>(in, count, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
    const VU8 bytes = hn::LoadU(d, from);
    const VU8 reached = hn::VecFromMask(d, hn::Eq(hn::Max(bytes, thresholds), bytes));
    hn::StoreU(hn::And(hn::Xor(bytes, hn::And(reached, flips)), masks), d, to);
  });
}

inline void widen_rgb(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) {
  const DU8 d;
  if (pixels < kBytes) return kScalarPixelKernels.widen_rgb(in, pixels, ranges);
  // In three consecutive vectors, the position of a byte determines its channel, so the channels are separated only at
  // the end.
  VU8 low[3], high[3];
  each<3>([&](auto i) FEEDLINE_LANES { low[i] = high[i] = hn::LoadU(d, in + i * kBytes); });
  const auto widen = [&](const std::uint8_t* from) FEEDLINE_LANES {
    each<3>([&](auto i) FEEDLINE_LANES {
      const VU8 bytes = hn::LoadU(d, from + i * kBytes);
      low[i] = hn::Min(low[i], bytes);
      high[i] = hn::Max(high[i], bytes);
    });
  };
  for (std::size_t i = kBytes; i + kBytes <= pixels; i += kBytes) widen(in + 3 * i);
  if (pixels % kBytes) widen(in + 3 * (pixels - kBytes));
  HWY_ALIGN std::uint8_t lows[kRgbStep], highs[kRgbStep];
  each<3>([&](auto i) FEEDLINE_LANES {
    hn::StoreU(low[i], d, lows + i * kBytes);
    hn::StoreU(high[i], d, highs + i * kBytes);
  });
  kScalarPixelKernels.widen_rgb(lows, kBytes, ranges);
  kScalarPixelKernels.widen_rgb(highs, kBytes, ranges);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
