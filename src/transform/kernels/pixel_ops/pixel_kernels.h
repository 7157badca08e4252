// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the pixel operations, one table of them per instruction set. All versions give the same bytes;
// pixel_kernel_contract_test.cpp holds them to it. Nothing is read or written past what is named. Stateless and
// thread-safe.

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "memory/pixels.h"

namespace feedline::transform {

using ByteTable = std::uint8_t[256];

// Smallest and largest byte of each channel.
struct ByteRanges {
  std::uint8_t low[3] = {255, 255, 255};
  std::uint8_t high[3] = {0, 0, 0};
};

struct PixelKernels {
  // Every byte of `in` by a table; of interleaved RGB by a table per channel. Rows of `out`, which may be those of
  // `in`, are `stride` bytes apart. All rows at once: what vectors need of a table is made before the first.
  void (*look_up)(const memory::PixelView& in, const ByteTable& table, std::uint8_t* out, std::size_t stride) = nullptr;
  void (*look_up_rgb)(const memory::PixelView& in, const ByteTable* tables, std::uint8_t* out,
                      std::size_t stride) = nullptr;
  // out[i] = in[i] & mask, where in[i] >= threshold exclusive-or'ed with `flip` before. `out` may be `in`.
  void (*fold)(const std::uint8_t* in, std::size_t count, std::uint8_t threshold, std::uint8_t flip, std::uint8_t mask,
               std::uint8_t* out) = nullptr;
  // Widens `ranges` by a row of RGB.
  void (*widen_rgb)(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) = nullptr;

  // ITU-R 601-2 luma of a row of RGB with 16 fractional bits, rounded; and the sum of those.
  void (*luma)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* out) = nullptr;
  std::uint64_t (*sum_luma)(const std::uint8_t* rgb, std::size_t pixels) = nullptr;
  // from + factor * (to - from), each step rounded to float, clipped to 0 and 255, truncated. `out` may be `to`.
  void (*blend)(const std::uint8_t* from, const std::uint8_t* to, std::size_t count, float factor,
                std::uint8_t* out) = nullptr;
  // The same from each pixel's luma. `out` may be `rgb`.
  void (*saturate)(const std::uint8_t* rgb, std::size_t pixels, float factor, std::uint8_t* out) = nullptr;
  // To HSV bytes as Pillow makes them, `shift` more of hue, and back. `out` may be `rgb`.
  void (*shift_hue)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) = nullptr;
  // A row of ImageFilter.SMOOTH: (eight neighbours + 5 * itself) / 13, rounded. Of the first and the last pixel, which
  // lack neighbours, nothing is written. rows: above, itself, below.
  void (*smooth)(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) = nullptr;

  // out[i] = in[i]
  void (*to_float)(const std::uint8_t* in, std::size_t count, float* out) = nullptr;
  // out[i] = weights[0] * in[i] + the sum for j = 1 to radius of weights[j] * (in[i - j * step] + in[i + j * step]),
  // summed in this order in float; `in` has radius * step values on both sides.
  void (*blur_row)(const float* in, const float* weights, int radius, int step, std::size_t count,
                   float* out) = nullptr;
  // The same from rows[radius] and those around it, rounded to even.
  void (*blur_rows)(const float* const* rows, const float* weights, int radius, std::size_t count,
                    std::uint8_t* out) = nullptr;

  // `groups` groups of normal numbers (normals.h) from the blocks on.
  void (*normals)(const base::Random::Blocks& blocks, std::size_t groups, float* out) = nullptr;
  // out[i] = weight * in[i], and the same added to out[i]: each step rounded to float.
  void (*weigh)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  void (*add_weighed)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  // out[i] = in[i] without its fraction, clipped to 0 and 255.
  void (*truncate)(const float* in, std::size_t count, std::uint8_t* out) = nullptr;

  // Where the pixels of row y of a transform come from, for their middles: in double, each step rounded.
  void (*affine_places)(const double* matrix, int y, int count, double* xs, double* ys) = nullptr;
  void (*perspective_places)(const double* coefficients, int y, int count, double* xs, double* ys) = nullptr;
  // A row of pixels from such places; `fill` where they lie outside.
  using Sample = void (*)(const memory::PixelView& in, const double* xs, const double* ys, int count,
                          const std::uint8_t* fill, std::uint8_t* out);
  Sample bilinear = nullptr;
  Sample bicubic = nullptr;
  // The same from places of torch's grid_sample, bilinear and bicubic.
  using GridSample = void (*)(const memory::PixelView& in, const float* xs, const float* ys, int count,
                              const std::uint8_t* fill, std::uint8_t* out);
  GridSample grid = nullptr;
  GridSample grid_cubic = nullptr;
};

// The plain C++ version: the reference.
extern const PixelKernels kScalarPixelKernels;
// Those of one of Highway's targets, which was compiled and is no HWY_SCALAR.
const PixelKernels* simd_pixel_kernels(std::int64_t target);

}  // namespace feedline::transform
