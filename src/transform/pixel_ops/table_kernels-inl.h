// SPDX-License-Identifier: Apache-2.0

// Tables of bytes in registers, where there are instructions that look 128 of them up at once.

#if defined(FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_TABLE_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "transform/lanes-inl.h"
#include "transform/pixel_ops/pixel_kernels.h"
#include "transform/pixel_ops/steps-inl.h"

#if HWY_TARGET != HWY_SCALAR  // which has one lane: the plain kernels serve
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3_DL && HWY_ARCH_X86
inline constexpr bool kWideTables = true;

struct TableLanes {
  VU8 quarter[4];

  explicit HWY_INLINE TableLanes(const ByteTable& table) {
    each<4>([&](auto i) FEEDLINE_LANES { quarter[i] = hn::LoadU(DU8(), table + kBytes * i); });
  }
  HWY_INLINE VU8 of(VU8 bytes) const {
    const VU8 low{_mm512_permutex2var_epi8(quarter[0].raw, bytes.raw, quarter[1].raw)};
    const VU8 high{_mm512_permutex2var_epi8(quarter[2].raw, bytes.raw, quarter[3].raw)};
    return hn::IfThenElse(hn::MaskFromVec(bytes), high, low);  // by the highest bit
  }
};
#else
inline constexpr bool kWideTables = false;

struct TableLanes {
  explicit TableLanes(const ByteTable&) {}
  HWY_INLINE VU8 of(VU8 bytes) const { return bytes; }
};
#endif

inline void look_up(const std::uint8_t* in, std::size_t count, const ByteTable& table, std::uint8_t* out) {
  if constexpr (!kWideTables) {
    kScalarPixelKernels.look_up(in, count, table, out);
  } else {
    const DU8 d;
    const TableLanes lanes(table);
    in_steps<kBytes>(in, count, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
      hn::StoreU(lanes.of(hn::LoadU(d, from)), d, to);
    });
  }
}

inline void look_up_rgb(const std::uint8_t* in, std::size_t pixels, const ByteTable* tables, std::uint8_t* out) {
  if constexpr (!kWideTables) {
    kScalarPixelKernels.look_up_rgb(in, pixels, tables, out);
  } else {
    const DU8 d;
    const TableLanes red_table(tables[0]), green_table(tables[1]), blue_table(tables[2]);
    in_steps<kRgbStep>(in, 3 * pixels, out, [&](const std::uint8_t* from, std::uint8_t* to) FEEDLINE_LANES {
      VU8 red, green, blue;
      hn::LoadInterleaved3(d, from, red, green, blue);
      hn::StoreInterleaved3(red_table.of(red), green_table.of(green), blue_table.of(blue), d, to);
    });
  }
}

inline void widen_rgb(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) {
  const DU8 d;
  if (pixels < kBytes) return kScalarPixelKernels.widen_rgb(in, pixels, ranges);
  // Three vectors in a row hold a byte's channel by its place alone: no need to take them apart until the end.
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
