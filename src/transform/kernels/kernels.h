// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of operations, with a version for each instruction set. All versions produce the same bytes. The
// tests that each must pass are declared in kernel_contract.h. Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"
#include "transform/kernels/linear_row.h"

namespace feedline::transform {

// The number of bytes that a vector kernel may read past the last pixel of a row, and write past the last output byte.
inline constexpr std::size_t kReadSlack = 64;
inline constexpr std::size_t kWriteSlack = 64;

// An AxisTable for the horizontal pass, in the memory layout that the active kernel reads. Each thread reuses one
// object.
struct RowPlan {
  const AxisTable* table = nullptr;
  int channels = 3;
  int in_width = 0;  // pixels per row
  // for vector kernels, filled by Kernels::plan_row
  int groups = 0;  // groups of output pixels, each computed by one iteration
  int chunks = 0;  // iterations over the taps
  std::vector<std::int32_t> offsets;
  AlignedVector<std::int16_t> weights;
  std::vector<std::int32_t> scratch;
};

// A pointwise float output with fused multiply-adds, proved equal to the table for all 256 inputs: y = divide(divide(x,
// 255) - mean, std). Each division multiplies by the reciprocal and makes one correction.
struct PointwiseConstants {
  float mean = 0, std = 1, reciprocal_std = 1;
};
inline constexpr float kReciprocal255 = 1.0f / 255.0f;

// R = Y + 1.402 Cr, G = Y - 0.344136 Cb - 0.714136 Cr, B = Y + 1.772 Cb. Each constant is the difference between a
// factor and an integer, with 15 fractional bits.
inline constexpr std::int16_t kRedOfCr = 13173, kBlueOfCb = -7471, kGreenOfCb = -11277, kGreenOfCr = -23401;
inline constexpr int kGreenBits = 4;  // fractional bits of green's two products

struct PixelKernels;

struct Kernels {
  const char* name = "";
  const PixelKernels* pixels = nullptr;  // those of pixel_ops/

  // Prepares plan.table for `horizontal`. Requires: table, channels and in_width are set.
  void (*plan_row)(RowPlan& plan) = nullptr;
  // Computes one row of the horizontal pass: writes table->count() pixels to `out`, which is followed by kWriteSlack
  // writable bytes. `in` is followed by kReadSlack readable bytes.
  void (*horizontal)(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) = nullptr;
  // Computes one row of the vertical pass: out[i] = sum over taps of rows[t][i] * weights[t], for `bytes` bytes. The
  // rows are followed by kReadSlack readable bytes, and out by kWriteSlack writable bytes.
  void (*vertical)(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
                   std::uint8_t* out) = nullptr;
  // Separates interleaved RGB into three rows of `width` bytes. Does not read or write past the rows.
  void (*split)(const std::uint8_t* in, int width, std::uint8_t* const* planes) = nullptr;
  // Converts Y, Cb, Cr (ITU-T T.871) to interleaved RGB, by the formula in scalar_kernels.cpp. The rows are followed by
  // kReadSlack readable bytes. Writes nothing past the last pixel.
  void (*ycc_to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                     std::uint8_t* out) = nullptr;
  // out[i] = table[in[i]], or in[count - 1 - i] if reversed. Does not write past out[count - 1].
  void (*lookup_float32)(const std::uint8_t* in, int count, bool reversed, const float* table,
                         const PointwiseConstants* proved, float* out) = nullptr;
  void (*lookup_float16)(const std::uint8_t* in, int count, bool reversed, const std::uint16_t* table,
                         const PointwiseConstants* proved, std::uint16_t* out) = nullptr;
  // Like emit, for `pixels` interleaved RGB pixels, with one table per channel, and either one proof per channel or
  // none.
  void (*lookup_rgb_float32)(const std::uint8_t* in, int pixels, const float (*tables)[256],
                             const PointwiseConstants* proved, float* out) = nullptr;
  void (*lookup_rgb_float16)(const std::uint8_t* in, int pixels, const std::uint16_t (*tables)[256],
                             const PointwiseConstants* proved, std::uint16_t* out) = nullptr;
  // own[i] = own[i] * share + partner[i] * rest. Every product and sum is rounded as in torch; half-precision numbers
  // are passed as bits.
  void (*blend_float32)(float* own, const float* partner, std::size_t count, float share, float rest) = nullptr;
  void (*blend_float16)(std::uint16_t* own, const std::uint16_t* partner, std::size_t count, float share,
                        float rest) = nullptr;
  // linear_row() of volumes with fewer than kMostGathered values. Does not read other values than those of the points.
  void (*linear_row_float32)(const float* volume, const LinearRow& points, float* out) = nullptr;
  void (*linear_row_int16)(const std::int16_t* volume, const LinearRow& points, float* out) = nullptr;
};

// Returns the scalar kernels, which are the reference.
const Kernels& scalar_kernels();
// Returns the kernels for each compiled instruction set that this machine supports, best first.
std::span<const Kernels* const> simd_kernels();

}  // namespace feedline::transform
