// SPDX-License-Identifier: Apache-2.0

// Interpolates a vector of pixels at a time in double precision, in Pillow's order of operations. Each lane is a pixel.
// One load of 8 bytes reads the neighbouring pixels of a row. Vectors that touch the border are computed pixel by
// pixel. Also contains the arithmetic of torch's grid_sample, in floats.

#if defined(FEEDLINE_PIXEL_OPS_WARP_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEEDLINE_PIXEL_OPS_WARP_KERNELS_INL_H_
#undef FEEDLINE_PIXEL_OPS_WARP_KERNELS_INL_H_
#else
#define FEEDLINE_PIXEL_OPS_WARP_KERNELS_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "transform/kernels/lanes-inl.h"
#include "transform/kernels/pixel_ops/pixel_kernels.h"
#include "transform/kernels/pixel_ops/sampled_pixel.h"

#if HWY_TARGET != HWY_SCALAR  // HWY_SCALAR has one lane, so the scalar kernels are used
HWY_BEFORE_NAMESPACE();
namespace feedline::transform::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64
using DF64 = hn::Repartition<double, DI32>;
using DU64 = hn::Repartition<std::uint64_t, DI32>;
using VF64 = hn::Vec<DF64>;
using VU64 = hn::Vec<DU64>;
inline constexpr int kPoints = kBytes / 8;

// 2^52: the low bits of a double in this range are its integer value.
inline constexpr std::uint64_t kWholeBits = 0x4330000000000000u;
inline constexpr double kWhole = 4503599627370496.0;

HWY_INLINE VF64 of_whole(VU64 numbers) {
  return hn::Sub(hn::BitCast(DF64(), hn::Or(numbers, hn::Set(DU64(), kWholeBits))), hn::Set(DF64(), kWhole));
}

HWY_INLINE VU64 to_whole(VF64 numbers) {
  return hn::Xor(hn::BitCast(DU64(), hn::Add(numbers, hn::Set(DF64(), kWhole))), hn::Set(DU64(), kWholeBits));
}

// Loads the 8 bytes at each offset.
HWY_INLINE VU64 words_at(const std::uint8_t* data, VU64 offsets) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const hn::Repartition<std::int64_t, DI32> d;
  const auto words = hn::GatherOffset(d, reinterpret_cast<const std::int64_t*>(data), hn::BitCast(d, offsets));
  return hn::BitCast(DU64(), words);
#else
  HWY_ALIGN std::uint64_t each_offset[kPoints], words[kPoints];
  hn::Store(offsets, DU64(), each_offset);
  for (int i = 0; i < kPoints; ++i) std::memcpy(words + i, data + each_offset[i], 8);
  return hn::Load(DU64(), words);
#endif
}

template <int kByte>
HWY_INLINE VF64 byte_of(VU64 words) {
  return of_whole(hn::And(hn::ShiftRight<8 * kByte>(words), hn::Set(DU64(), 0xff)));
}

HWY_INLINE VF64 lerp_of(VF64 a, VF64 b, VF64 rest) { return hn::Add(a, hn::Mul(hn::Sub(b, a), rest)); }

HWY_INLINE VF64 cubic_of(VF64 a, VF64 b, VF64 c, VF64 d, VF64 rest) {
  const VF64 difference = hn::Sub(a, b);
  const VF64 p2 = hn::Sub(c, a);
  const VF64 p3 = hn::Sub(hn::Add(hn::Add(difference, difference), c), d);
  const VF64 p4 = hn::Add(hn::Sub(hn::Sub(b, a), c), d);
  const VF64 inner = hn::Add(p3, hn::Mul(rest, p4));
  return hn::Add(b, hn::Mul(rest, hn::Add(p2, hn::Mul(rest, inner))));
}

// The offset at which the first row is loaded, and the distances to the next pixels.
struct PointLanes {
  VU64 offsets;
  VF64 rest_x, rest_y;
};

// Selects positions for which all needed pixels exist and the loads end within the row.
struct Interior {
  VF64 low, end_x, end_y;

  // before, after: the number of pixels needed before and after the pixel that contains the position, in both
  // directions. bytes: the size of a load that starts at its first pixel.
  Interior(const memory::PixelView& in, int before, int after, int bytes)
      : low(hn::Set(DF64(), before)),
        end_x(hn::Set(DF64(), std::max(in.width * in.channels - bytes + in.channels, 0) / in.channels + before)),
        end_y(hn::Set(DF64(), in.height - after)) {}

  // The positions have already been shifted by half a pixel. NaN does not count as inside.
  HWY_INLINE bool holds(VF64 x, VF64 y) const {
    const auto from = hn::And(hn::Ge(x, low), hn::Ge(y, low));
    return hn::AllTrue(DF64(), hn::And(from, hn::And(hn::Lt(x, end_x), hn::Lt(y, end_y))));
  }
};

HWY_INLINE PointLanes split_points(const memory::PixelView& in, VF64 x, VF64 y, int before) {
  const DF64 d;
  const VF64 column = hn::Floor(x), row = hn::Floor(y);
  const VF64 first = hn::Set(d, before);
  const VF64 along = hn::Mul(hn::Sub(column, first), hn::Set(d, in.channels));
  const VF64 down = hn::Mul(hn::Sub(row, first), hn::Set(d, static_cast<double>(in.stride)));
  return {to_whole(hn::Add(along, down)), hn::Sub(x, column), hn::Sub(y, row)};
}

// Stores truncated values from 0 to 255 as pixels; there is a vector for each channel.
template <int kChannels>
HWY_INLINE void store_pixels(const VF64 (&values)[kChannels], std::uint8_t* out) {
  // truncates, because adding of_whole's constant would round
  HWY_ALIGN std::uint64_t pixels[kPoints];
  VU64 packed = to_whole(hn::Floor(values[0]));
  if constexpr (kChannels == 3) {
    packed = hn::Or(packed, hn::ShiftLeft<8>(to_whole(hn::Floor(values[1]))));
    packed = hn::Or(packed, hn::ShiftLeft<16>(to_whole(hn::Floor(values[2]))));
  }
  hn::Store(packed, DU64(), pixels);
  for (int i = 0; i < kPoints; ++i) std::memcpy(out + i * kChannels, pixels + i, kChannels);
}

template <int kChannels>
struct BilinearLanes {
  static constexpr int kBefore = 0, kAfter = 1, kLoaded = 8;
  static constexpr auto kPixel = bilinear_pixel<kChannels>;
  static constexpr int kCount = kChannels;

  static HWY_INLINE void sample(const memory::PixelView& in, const PointLanes& points, std::uint8_t* out) {
    const VU64 above = words_at(in.data, points.offsets), below = words_at(in.data + in.stride, points.offsets);
    VF64 values[kChannels];
    each<kChannels>([&](auto c) FEEDLINE_LANES {
      const VF64 first = lerp_of(byte_of<c>(above), byte_of<c + kChannels>(above), points.rest_x);
      const VF64 second = lerp_of(byte_of<c>(below), byte_of<c + kChannels>(below), points.rest_x);
      values[c] = lerp_of(first, second, points.rest_y);
    });
    store_pixels(values, out);
  }
};

template <int kChannels>
struct BicubicLanes {
  static constexpr int kBefore = 1, kAfter = 2, kLoaded = kChannels == 3 ? 12 : 8;
  static constexpr auto kPixel = bicubic_pixel<kChannels>;
  static constexpr int kCount = kChannels;

  static HWY_INLINE void sample(const memory::PixelView& in, const PointLanes& points, std::uint8_t* out) {
    VU64 near[4], far[4];  // bytes 0 to 7, and 4 to 11
    each<4>([&](auto row) FEEDLINE_LANES {
      const std::uint8_t* const data = in.data + static_cast<std::size_t>(int{row}) * in.stride;
      near[row] = words_at(data, points.offsets);
      if constexpr (kChannels == 3) far[row] = words_at(data + 4, points.offsets);
    });
    VF64 values[kChannels];
    each<kChannels>([&](auto c) FEEDLINE_LANES {
      VF64 rows[4];
      each<4>([&](auto row) FEEDLINE_LANES {
        const auto tap = [&](auto i) FEEDLINE_LANES {
          constexpr int kByte = c + i * kChannels;
          if constexpr (kByte < 8) return byte_of<kByte>(near[row]);
          if constexpr (kByte >= 8) return byte_of<kByte - 4>(far[row]);
        };
        using std::integral_constant;
        rows[row] = cubic_of(tap(integral_constant<int, 0>{}), tap(integral_constant<int, 1>{}),
                             tap(integral_constant<int, 2>{}), tap(integral_constant<int, 3>{}), points.rest_x);
      });
      const VF64 value = cubic_of(rows[0], rows[1], rows[2], rows[3], points.rest_y);
      values[c] = hn::Min(hn::Max(value, hn::Zero(DF64())), hn::Set(DF64(), 255.0));
    });
    store_pixels(values, out);
  }
};

template <typename Lanes>
HWY_INLINE void sample_row(const memory::PixelView& in, const double* xs, const double* ys, int count,
                           const std::uint8_t* fill, std::uint8_t* out) {
  const DF64 d;
  const Interior interior(in, Lanes::kBefore, Lanes::kAfter, Lanes::kLoaded);
  const VF64 half = hn::Set(d, 0.5);
  int i = 0;
  for (; i + kPoints <= count; i += kPoints) {
    const VF64 x = hn::Sub(hn::LoadU(d, xs + i), half), y = hn::Sub(hn::LoadU(d, ys + i), half);
    if (interior.holds(x, y)) {
      Lanes::sample(in, split_points(in, x, y, Lanes::kBefore), out + i * Lanes::kCount);
    } else {
      for (int j = i; j < i + kPoints; ++j) Lanes::kPixel(in, xs[j], ys[j], fill, out + j * Lanes::kCount);
    }
  }
  for (; i < count; ++i) Lanes::kPixel(in, xs[i], ys[i], fill, out + i * Lanes::kCount);
}

template <template <int> typename Lanes>
void sample(const memory::PixelView& in, const double* xs, const double* ys, int count, const std::uint8_t* fill,
            std::uint8_t* out) {
  in.channels == 3 ? sample_row<Lanes<3>>(in, xs, ys, count, fill, out)
                   : sample_row<Lanes<1>>(in, xs, ys, count, fill, out);
}

inline void bilinear(const memory::PixelView& in, const double* xs, const double* ys, int count,
                     const std::uint8_t* fill, std::uint8_t* out) {
  sample<BilinearLanes>(in, xs, ys, count, fill, out);
}

inline void bicubic(const memory::PixelView& in, const double* xs, const double* ys, int count,
                    const std::uint8_t* fill, std::uint8_t* out) {
  sample<BicubicLanes>(in, xs, ys, count, fill, out);
}

// numbers[0] x + numbers[1] y + numbers[2]
struct LinearLanes {
  VF64 slope, row, shift;

  LinearLanes(const double* numbers, double shift_of, double y)
      : slope(hn::Set(DF64(), numbers[0])), row(hn::Set(DF64(), numbers[1] * y)), shift(hn::Set(DF64(), shift_of)) {}
  HWY_INLINE VF64 at(VF64 x) const { return hn::Add(hn::Add(hn::Mul(slope, x), row), shift); }
};

// Calls f(i, x) for each vector of pixel centres; the last vectors may overlap. Requires: count >= kPoints.
template <typename F>
HWY_INLINE void each_middle(int count, F f) {
  const DF64 d;
  for (int i = 0; i + kPoints <= count; i += kPoints) f(i, hn::Iota(d, i + 0.5));
  if (count % kPoints) f(count - kPoints, hn::Iota(d, count - kPoints + 0.5));
}

inline void affine_points(const double* matrix, int y, int count, double* xs, double* ys) {
  if (count < kPoints) return kScalarPixelKernels.affine_points(matrix, y, count, xs, ys);
  const DF64 d;
  const LinearLanes to_x(matrix, matrix[2], y + 0.5), to_y(matrix + 3, matrix[5], y + 0.5);
  each_middle(count, [&](int i, VF64 x) FEEDLINE_LANES {
    hn::StoreU(to_x.at(x), d, xs + i);
    hn::StoreU(to_y.at(x), d, ys + i);
  });
}

inline void perspective_points(const double* coefficients, int y, int count, double* xs, double* ys) {
  if (count < kPoints) return kScalarPixelKernels.perspective_points(coefficients, y, count, xs, ys);
  const DF64 d;
  const LinearLanes to_x(coefficients, coefficients[2], y + 0.5), to_y(coefficients + 3, coefficients[5], y + 0.5);
  const LinearLanes below(coefficients + 6, 1.0, y + 0.5);
  each_middle(count, [&](int i, VF64 x) FEEDLINE_LANES {
    const VF64 divisor = below.at(x);
    hn::StoreU(hn::Div(to_x.at(x), divisor), d, xs + i);
    hn::StoreU(hn::Div(to_y.at(x), divisor), d, ys + i);
  });
}
#endif  // HWY_HAVE_FLOAT64

using DF32 = hn::Repartition<float, DI32>;
using VF32 = hn::Vec<DF32>;
using VI32 = hn::Vec<DI32>;
inline constexpr int kGridPoints = kBytes / 4;

// Loads the 4 bytes at each offset.
HWY_INLINE VI32 halves_at(const std::uint8_t* data, VI32 offsets) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::GatherOffset(DI32(), reinterpret_cast<const std::int32_t*>(data), offsets);
#else
  HWY_ALIGN std::int32_t each_offset[kGridPoints], halves[kGridPoints];
  hn::Store(offsets, DI32(), each_offset);
  for (int i = 0; i < kGridPoints; ++i) std::memcpy(halves + i, data + each_offset[i], 4);
  return hn::Load(DI32(), halves);
#endif
}

template <int kByte>
HWY_INLINE VF32 float_of(VI32 bytes) {
  return hn::ConvertTo(DF32(), hn::And(hn::ShiftRight<8 * kByte>(bytes), hn::Set(DI32(), 0xff)));
}

// Each lane has two neighbouring pixels of a row. For RGB, the second load starts at the last byte of the first pixel,
// so that nothing after the second pixel is read.
template <int kChannels>
struct PixelPairs {
  VI32 first, second;

  PixelPairs(const std::uint8_t* data, VI32 offsets) : first(halves_at(data, offsets)), second(first) {
    if constexpr (kChannels == 3) second = halves_at(data + 2, offsets);
  }
  template <int kChannel>
  HWY_INLINE VF32 left() const {
    return float_of<kChannel>(first);
  }
  template <int kChannel>
  HWY_INLINE VF32 right() const {
    return float_of<kChannel + 1>(second);
  }
};

// Stores fractional values as pixels after rounding and clamping them to bytes.
template <int kChannels>
HWY_INLINE void store_rounded(const VF32 (&values)[kChannels], std::uint8_t* out) {
  const DF32 d;
  VI32 packed = hn::Zero(DI32());
  each<kChannels>([&](auto c) FEEDLINE_LANES {
    const VI32 byte = hn::NearestInt(hn::Min(hn::Max(values[c], hn::Zero(d)), hn::Set(d, 255.0f)));
    packed = hn::Or(packed, hn::ShiftLeft<8 * c>(byte));
  });
  HWY_ALIGN std::int32_t pixels[kGridPoints];
  hn::Store(packed, DI32(), pixels);
  for (int i = 0; i < kGridPoints; ++i) std::memcpy(out + i * kChannels, pixels + i, kChannels);
}

// Blends with the fill colour outside the image, like torchvision; `fill` is the colour of the channel.
HWY_INLINE VF32 filled(VF32 sum, VF32 inside, std::uint8_t fill) {
  const VF32 colour = hn::Set(DF32(), static_cast<float>(fill));
  return hn::Add(hn::Mul(hn::Sub(sum, colour), inside), colour);
}

// Returns the offsets of the pixels (x, y).
template <int kChannels>
HWY_INLINE VI32 grid_offsets(const memory::PixelView& in, VF32 x, VF32 y) {
  const VI32 along = hn::Mul(hn::ConvertTo(DI32(), x), hn::Set(DI32(), kChannels));
  const VI32 down = hn::Mul(hn::ConvertTo(DI32(), y), hn::Set(DI32(), static_cast<std::int32_t>(in.stride)));
  return hn::Add(along, down);
}

template <int kChannels>
struct GridLinear {
  static constexpr int kBefore = 0, kAfter = 1;
  static constexpr int kBeyond = kChannels == 3 ? 0 : 2;  // pixels that a load reads after the last one
  static constexpr auto kPixel = grid_pixel<kChannels>;

  static HWY_INLINE void sample(const memory::PixelView& in, VF32 x, VF32 y, const std::uint8_t* fill,
                                std::uint8_t* out) {
    const DF32 d;
    const VF32 column = hn::Floor(x), row = hn::Floor(y), one = hn::Set(d, 1.0f);
    const VF32 east = hn::Sub(x, column), south = hn::Sub(y, row);
    const VF32 west = hn::Sub(one, east), north = hn::Sub(one, south);
    const VI32 offsets = grid_offsets<kChannels>(in, column, row);
    const PixelPairs<kChannels> above(in.data, offsets), below(in.data + in.stride, offsets);
    const VF32 weights[4] = {hn::Mul(north, west), hn::Mul(north, east), hn::Mul(south, west), hn::Mul(south, east)};
    const VF32 inside = hn::Add(hn::Add(hn::Add(weights[0], weights[1]), weights[2]), weights[3]);
    VF32 values[kChannels];
    each<kChannels>([&](auto c) FEEDLINE_LANES {
      const VF32 taps[4] = {above.template left<c>(), above.template right<c>(), below.template left<c>(),
                            below.template right<c>()};
      VF32 sum = hn::Mul(taps[0], weights[0]);
      for (int i = 1; i < 4; ++i) sum = hn::Add(sum, hn::Mul(taps[i], weights[i]));
      values[c] = filled(sum, inside, fill[c]);
    });
    store_rounded(values, out);
  }
};

// GridCubic for vectors.
struct GridCubicLanes {
  VF32 weights[4];

  HWY_INLINE explicit GridCubicLanes(VF32 rest) {
    const DF32 d;
    const VF32 one = hn::Set(d, 1.0f), other = hn::Sub(one, rest);
    weights[0] = far(hn::Add(rest, one));
    weights[1] = near(rest);
    weights[2] = near(other);
    weights[3] = far(hn::Add(other, one));
  }
  static HWY_INLINE VF32 near(VF32 way) {
    const DF32 d;
    const VF32 inner = hn::Sub(hn::Mul(hn::Set(d, GridCubic::kA + 2), way), hn::Set(d, GridCubic::kA + 3));
    return hn::Add(hn::Mul(hn::Mul(inner, way), way), hn::Set(d, 1.0f));
  }
  static HWY_INLINE VF32 far(VF32 way) {
    const DF32 d;
    const VF32 inner = hn::Sub(hn::Mul(hn::Set(d, GridCubic::kA), way), hn::Set(d, 5 * GridCubic::kA));
    const VF32 middle = hn::Add(hn::Mul(inner, way), hn::Set(d, 8 * GridCubic::kA));
    return hn::Sub(hn::Mul(middle, way), hn::Set(d, 4 * GridCubic::kA));
  }
  // for the values of tap(0) to tap(3)
  template <typename Tap>
  HWY_INLINE VF32 sum(Tap tap) const {
    using std::integral_constant;
    VF32 sum = hn::Mul(tap(integral_constant<int, 0>{}), weights[0]);
    sum = hn::Add(sum, hn::Mul(tap(integral_constant<int, 1>{}), weights[1]));
    sum = hn::Add(sum, hn::Mul(tap(integral_constant<int, 2>{}), weights[2]));
    return hn::Add(sum, hn::Mul(tap(integral_constant<int, 3>{}), weights[3]));
  }
};

template <int kChannels>
struct GridBicubic {
  static constexpr int kBefore = 1, kAfter = 2, kBeyond = 0;
  static constexpr auto kPixel = grid_cubic_pixel<kChannels>;

  static HWY_INLINE void sample(const memory::PixelView& in, VF32 x, VF32 y, const std::uint8_t* fill,
                                std::uint8_t* out) {
    const DF32 d;
    const VF32 column = hn::Floor(x), row = hn::Floor(y), one = hn::Set(d, 1.0f);
    const GridCubicLanes along(hn::Sub(x, column)), down(hn::Sub(y, row));
    const VI32 offsets = grid_offsets<kChannels>(in, hn::Sub(column, one), hn::Sub(row, one));
    VI32 words[4][kChannels];  // the four pixels of each row
    each<4>([&](auto j) FEEDLINE_LANES {
      const std::uint8_t* const data = in.data + static_cast<std::size_t>(int{j}) * in.stride;
      each<kChannels>([&](auto word) FEEDLINE_LANES { words[j][word] = halves_at(data + 4 * word, offsets); });
    });
    const VF32 in_row = along.sum([&](auto) FEEDLINE_LANES { return one; });
    const VF32 inside = down.sum([&](auto) FEEDLINE_LANES { return in_row; });
    VF32 values[kChannels];
    each<kChannels>([&](auto c) FEEDLINE_LANES {
      const VF32 sum = down.sum([&](auto j) FEEDLINE_LANES {
        return along.sum([&](auto i) FEEDLINE_LANES {
          constexpr int kByte = i * kChannels + c;
          return float_of<kByte % 4>(words[j][kByte / 4]);
        });
      });
      values[c] = filled(sum, inside, fill[c]);
    });
    store_rounded(values, out);
  }
};

template <template <int> typename Lanes, int kChannels>
HWY_INLINE void grid_row(const memory::PixelView& in, const float* xs, const float* ys, int count,
                         const std::uint8_t* fill, std::uint8_t* out) {
  using Kind = Lanes<kChannels>;
  const DF32 d;
  const bool is_small = static_cast<std::uint64_t>(in.height) * static_cast<std::uint64_t>(in.stride) <
                        (1u << 31);  // offsets are 32 bits wide
  const VF32 begin = hn::Set(d, static_cast<float>(Kind::kBefore));
  const VF32 end_x = hn::Set(d, static_cast<float>(in.width - Kind::kAfter - Kind::kBeyond));
  const VF32 end_y = hn::Set(d, static_cast<float>(in.height - Kind::kAfter));
  int i = 0;
  for (; is_small && i + kGridPoints <= count; i += kGridPoints) {
    const VF32 x = hn::LoadU(d, xs + i), y = hn::LoadU(d, ys + i);
    const auto from = hn::And(hn::Ge(x, begin), hn::Ge(y, begin));
    if (hn::AllTrue(d, hn::And(from, hn::And(hn::Lt(x, end_x), hn::Lt(y, end_y))))) {
      Kind::sample(in, x, y, fill, out + i * kChannels);
    } else {
      for (int j = i; j < i + kGridPoints; ++j) Kind::kPixel(in, xs[j], ys[j], fill, out + j * kChannels);
    }
  }
  for (; i < count; ++i) Kind::kPixel(in, xs[i], ys[i], fill, out + i * kChannels);
}

inline void grid(const memory::PixelView& in, const float* xs, const float* ys, int count, const std::uint8_t* fill,
                 std::uint8_t* out) {
  in.channels == 3 ? grid_row<GridLinear, 3>(in, xs, ys, count, fill, out)
                   : grid_row<GridLinear, 1>(in, xs, ys, count, fill, out);
}

inline void grid_cubic(const memory::PixelView& in, const float* xs, const float* ys, int count,
                       const std::uint8_t* fill, std::uint8_t* out) {
  in.channels == 3 ? grid_row<GridBicubic, 3>(in, xs, ys, count, fill, out)
                   : grid_row<GridBicubic, 1>(in, xs, ys, count, fill, out);
}

}  // namespace feedline::transform::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // include guard
