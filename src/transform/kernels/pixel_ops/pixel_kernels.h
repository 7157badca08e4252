// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of pixel operations, with one table per instruction set. All versions produce the same bytes, which
// pixel_kernel_contract_test.cpp checks. Kernels access only the memory described here. Stateless and thread-safe.

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "memory/pixels.h"

namespace feedline::transform {

using ByteTable = std::uint8_t[256];

// The smallest and largest byte of each channel.
struct ByteRanges {
  std::uint8_t low[3] = {255, 255, 255};
  std::uint8_t high[3] = {0, 0, 0};
};

struct PixelKernels {
  // Maps every byte of `in` with a table, or interleaved RGB with a table per channel. Rows of `out` are `stride` bytes
  // apart; `out` may be `in`. Processes all rows in one call, because the table is prepared once, before the first row.
  void (*look_up)(const memory::PixelView& in, const ByteTable& table, std::uint8_t* out, std::size_t stride) = nullptr;
  void (*look_up_rgb)(const memory::PixelView& in, const ByteTable* tables, std::uint8_t* out,
                      std::size_t stride) = nullptr;
  // out[i] = (in[i] >= threshold ? in[i] ^ flip : in[i]) & mask. `out` may be `in`.
  void (*fold)(const std::uint8_t* in, std::size_t count, std::uint8_t threshold, std::uint8_t flip, std::uint8_t mask,
               std::uint8_t* out) = nullptr;
  // Extends `ranges` by a row of RGB.
  void (*widen_rgb)(const std::uint8_t* in, std::size_t pixels, ByteRanges& ranges) = nullptr;

  // luma() and sum_luma() compute the rounded ITU-R 601-2 luma of a row of RGB with 16 fractional bits; sum_luma()
  // returns the sum over the row.
  void (*luma)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t* out) = nullptr;
  std::uint64_t (*sum_luma)(const std::uint8_t* rgb, std::size_t pixels) = nullptr;
  // from + factor * (to - from): each step is rounded to float, and the result is clipped to 0 and 255, and truncated.
  // `out` may be `to`.
  void (*blend)(const std::uint8_t* from, const std::uint8_t* to, std::size_t count, float factor,
                std::uint8_t* out) = nullptr;
  // Like blend, starting from the luma of each pixel. `out` may be `rgb`.
  void (*saturate)(const std::uint8_t* rgb, std::size_t pixels, float factor, std::uint8_t* out) = nullptr;
  // Converts to Pillow's HSV bytes, adds `shift` to the hue, and converts back. `out` may be `rgb`.
  void (*shift_hue)(const std::uint8_t* rgb, std::size_t pixels, std::uint8_t shift, std::uint8_t* out) = nullptr;
  // Computes a row of ImageFilter.SMOOTH: (eight neighbours + 5 * itself) / 13, rounded. Does not write the first and
  // the last pixel, which do not have all neighbours. rows: the rows above, at and below the output row.
  void (*smooth)(const std::uint8_t* const* rows, int width, int channels, std::uint8_t* out) = nullptr;

  // out[i] = in[i]
  void (*to_float)(const std::uint8_t* in, std::size_t count, float* out) = nullptr;
  // out[i] = weights[0] * in[i] + the sum over j = 1 to radius of weights[j] * (in[i - j * step] + in[i + j * step]),
  // added in this order in float. `in` has radius * step more values on both sides.
  void (*blur_row)(const float* in, const float* weights, int radius, int step, std::size_t count,
                   float* out) = nullptr;
  // Blurs columns like blur_row(), using rows[radius] and the rows around it, and rounds half to even.
  void (*blur_rows)(const float* const* rows, const float* weights, int radius, std::size_t count,
                    std::uint8_t* out) = nullptr;

  // Computes `groups` groups of normal numbers (normals.h), starting with the given blocks.
  void (*normals)(const base::Random::Blocks& blocks, std::size_t groups, float* out) = nullptr;
  // out[i] = weight * in[i], and out[i] += weight * in[i]; each step is rounded to float.
  void (*weigh)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  void (*add_weighed)(const std::uint8_t* in, std::size_t count, float weight, float* out) = nullptr;
  // out[i] = in[i], truncated and clipped to 0 and 255.
  void (*truncate)(const float* in, std::size_t count, std::uint8_t* out) = nullptr;

  // Computes the source positions of the pixel centres in row y of a transform, in double, with each step rounded.
  void (*affine_points)(const double* matrix, int y, int count, double* xs, double* ys) = nullptr;
  void (*perspective_points)(const double* coefficients, int y, int count, double* xs, double* ys) = nullptr;
  // Computes a row of pixels from their source positions, with `fill` outside the image.
  using Sample = void (*)(const memory::PixelView& in, const double* xs, const double* ys, int count,
                          const std::uint8_t* fill, std::uint8_t* out);
  Sample bilinear = nullptr;
  Sample bicubic = nullptr;
  // Like bilinear() and bicubic(), with the positions and arithmetic of torch's grid_sample.
  using GridSample = void (*)(const memory::PixelView& in, const float* xs, const float* ys, int count,
                              const std::uint8_t* fill, std::uint8_t* out);
  GridSample grid = nullptr;
  GridSample grid_cubic = nullptr;
};

// The scalar version, which is the reference.
extern const PixelKernels kScalarPixelKernels;
// Returns the kernels for a compiled Highway target other than HWY_SCALAR.
const PixelKernels* simd_pixel_kernels(std::int64_t target);

}  // namespace feedline::transform
