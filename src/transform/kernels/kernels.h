// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops that every instruction set has its own version of. All versions give the same bytes;
// kernel_contract.h is what each must pass. Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transform/kernels/aligned_vector.h"
#include "transform/kernels/axis_table.h"

namespace feedline::transform {

// A vector kernel may read this many bytes past the last pixel of a row, and write as many past the last output byte.
inline constexpr std::size_t kReadSlack = 64;
inline constexpr std::size_t kWriteSlack = 64;

// An AxisTable for the horizontal pass, laid out as the active kernel reads it. A thread keeps one.
struct RowPlan {
  const AxisTable* table = nullptr;
  int channels = 3;
  int in_width = 0;  // pixels of the rows that will come
  // of the vector kernels, filled by Kernels::plan_row
  int groups = 0;  // runs of output pixels made by one turn of the loop
  int chunks = 0;  // turns over the taps
  std::vector<std::int32_t> offsets;
  AlignedVector<std::int16_t> weights;
  std::vector<std::int32_t> scratch;
};

// How a pointwise float output is computed with fused multiply-adds, where that was proved equal to the table for
// all 256 inputs: y = divide(divide(x, 255) - mean, std), divisions by reciprocal and one correction each.
struct PointwiseConstants {
  float mean = 0, std = 1, reciprocal_std = 1;
};
inline constexpr float kReciprocal255 = 1.0f / 255.0f;

// R = Y + 1.402 Cr, G = Y - 0.344136 Cb - 0.714136 Cr, B = Y + 1.772 Cb: what the factors have beside a whole number,
// in 15 bits.
inline constexpr std::int16_t kRedOfCr = 13173, kBlueOfCb = -7471, kGreenOfCb = -11277, kGreenOfCr = -23401;
inline constexpr int kGreenBits = 4;  // of its two products behind the point

struct PixelKernels;

struct Kernels {
  const char* name = "";
  const PixelKernels* pixels = nullptr;  // those of pixel_ops/

  // Prepares plan.table for `horizontal`. Requires: table, channels, in_width are set.
  void (*plan_row)(RowPlan& plan) = nullptr;
  // One row of the horizontal pass: table->count() pixels to `out`, which has kWriteSlack. `in` has kReadSlack.
  void (*horizontal)(const std::uint8_t* in, const RowPlan& plan, std::uint8_t* out) = nullptr;
  // One row of the vertical pass: out[i] = sum over taps of rows[t][i] * weights[t], `bytes` of them.
  // rows have kReadSlack, out has kWriteSlack.
  void (*vertical)(const std::uint8_t* const* rows, const std::int32_t* weights, int taps, std::size_t bytes,
                   std::uint8_t* out) = nullptr;
  // Interleaved RGB to three rows of `width`. Reads and writes nothing past them.
  void (*split)(const std::uint8_t* in, int width, std::uint8_t* const* planes) = nullptr;
  // Y, Cb, Cr (ITU-T T.871) to interleaved RGB, by the formula in scalar_kernels.cpp. The rows have kReadSlack. Writes
  // nothing past the last pixel.
  void (*ycc_to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                     std::uint8_t* out) = nullptr;
  // out[i] = table[in[i]], or in[count - 1 - i] where reversed. Writes nothing past out[count - 1].
  void (*lookup_float32)(const std::uint8_t* in, int count, bool reversed, const float* table,
                         const PointwiseConstants* proved, float* out) = nullptr;
  void (*lookup_float16)(const std::uint8_t* in, int count, bool reversed, const std::uint16_t* table,
                         const PointwiseConstants* proved, std::uint16_t* out) = nullptr;
  // The same for `pixels` interleaved RGB pixels, with one table (and one proof, or none at all) per channel.
  void (*lookup_rgb_float32)(const std::uint8_t* in, int pixels, const float (*tables)[256],
                             const PointwiseConstants* proved, float* out) = nullptr;
  void (*lookup_rgb_float16)(const std::uint8_t* in, int pixels, const std::uint16_t (*tables)[256],
                             const PointwiseConstants* proved, std::uint16_t* out) = nullptr;
  // own[i] = own[i] * share + partner[i] * rest, every product and sum rounded, as torch does it; halves as their bits.
  void (*blend_float32)(float* own, const float* partner, std::size_t count, float share, float rest) = nullptr;
  void (*blend_float16)(std::uint16_t* own, const std::uint16_t* partner, std::size_t count, float share,
                        float rest) = nullptr;
};

// The plain C++ version: the reference.
const Kernels& scalar_kernels();
// One per instruction set that was compiled and that this machine has, best first.
std::span<const Kernels* const> simd_kernels();

}  // namespace feedline::transform
