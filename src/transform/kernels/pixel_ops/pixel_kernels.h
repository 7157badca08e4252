// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the pixel operations, one table per instruction set. All versions produce the same bytes, which
// pixel_kernel_contract_test.cpp checks. They access only the named memory. Stateless and thread-safe.

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
  // Maps every byte of `in` by a table, or interleaved RGB by a table per channel. Rows of `out`, which may be those of
  // `in`, are `stride` bytes apart. Handles all rows in one call, because a table is prepared once before the first.
  void (*look_up)(const memory::PixelView& in, const ByteTable& table, std::uint8_t* out, std::size_t stride) = nullptr;
  void (*look_up_rgb)(const memory::PixelView& in, const ByteTable* tables, std::uint8_t* out,
                      std::size_t stride) = nullptr;
  // out[i] = (in[i] >= threshold ? in[i] ^ flip : in[i]) & mask. `out` may be `in`.
  void (*fold)(const std::uint8_t* in, std::size_t count, std::uint8_t threshold, std::uint8_t flip, std::uint8_t mask,
               std::uint8_t* out) = nullptr;
  // Widens `ranges` by a row of RGB.
  void (*widen_rgb)(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) = nullptr;

  // Rounded ITU-R 601-2 luma of a row of RGB, computed with 16 fractional bits; and the sum of the luma.
  void (*luma)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* out) = nullptr;
  std::uint64_t (*sum_luma)(const std::uint8_t* rgb, std::size_t pixels) = nullptr;
  // from + factor * (to - from), each step rounded to float, clipped to 0 and 255, truncated. `out` may be `to`.
  void (*blend)(const std::uint8_t* from, const std::uint8_t* to, std::size_t count, float factor,
                std::uint8_t* out) = nullptr;
  // The same, starting from each pixel's luma. `out` may be `rgb`.
  void (*saturate)(const std::uint8_t* rgb, std::size_t pixels, float factor, std::uint8_t* out) = nullptr;
  // Converts to Pillow's HSV bytes, adds `shift` to the hue, and converts back. `out` may be `rgb`.
  void (*shift_hue)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) = nullptr;
  // A row of ImageFilter.SMOOTH: (eight neighbours + 5 * itself) / 13, rounded. Does not write the first and last
  // pixel, which lack neighbours. rows: above, itself, below.
  void (*smooth)(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) = nullptr;

  // out[i] = in[i]
  void (*to_float)(const std::uint8_t* in, std::size_t count, float* out) = nullptr;
  // out[i] = weights[0] * in[i] + the sum over j = 1 to radius of weights[j] * (in[i - j * step] + in[i + j * step]),
  // summed in this order in float; `in` has radius * step values on both sides.
  void (*blur_row)(const float* in, const float* weights, int radius, int step, std::size_t count,
                   float* out) = nullptr;
  // The same for columns, from rows[radius] and the rows around it, rounded to even.
  void (*blur_rows)(const float* const* rows, const float* weights, int radius, std::size_t count,
                    std::uint8_t* out) = nullptr;

  // `groups` groups of normal numbers (normals.h), starting at the given blocks.
  void (*normals)(const base::Random::Blocks& blocks, std::size_t groups, float* out) = nullptr;
  // out[i] = weight * in[i], and out[i] += weight * in[i], with each step rounded to float.
  void (*weigh)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  void (*add_weighed)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  // out[i] = in[i], truncated and clipped to 0 and 255.
  void (*truncate)(const float* in, std::size_t count, std::uint8_t* out) = nullptr;

  // The source positions for the pixel centres of row y of a transform, in double with each step rounded.
  void (*affine_places)(const double* matrix, int y, int count, double* xs, double* ys) = nullptr;
  void (*perspective_places)(const double* coefficients, int y, int count, double* xs, double* ys) = nullptr;
  // A row of pixels from such positions, with `fill` outside of the image.
  using Sample = void (*)(const memory::PixelView& in, const double* xs, const double* ys, int count,
                          const std::uint8_t* fill, std::uint8_t* out);
  Sample bilinear = nullptr;
  Sample bicubic = nullptr;
  // The same for positions of torch's grid_sample, bilinear and bicubic.
  using GridSample = void (*)(const memory::PixelView& in, const float* xs, const float* ys, int count,
                              const std::uint8_t* fill, std::uint8_t* out);
  GridSample grid = nullptr;
  GridSample grid_cubic = nullptr;
};

// The scalar version, which is the reference.
extern const PixelKernels kScalarPixelKernels;
// The kernels for a compiled Highway target other than HWY_SCALAR.
const PixelKernels* simd_pixel_kernels(std::int64_t target);

}  // namespace feedline::transform
