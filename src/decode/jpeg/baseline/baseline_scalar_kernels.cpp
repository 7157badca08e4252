// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "decode/jpeg/baseline/baseline_idct.h"
#include "decode/jpeg/baseline/baseline_kernels.h"
#include "decode/jpeg/baseline/baseline_turns.h"
#include "decode/jpeg/progressive/progressive_entropy.h"
#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

std::uint8_t clamped(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

void upsample_across(const std::uint8_t* row, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    const int here = 3 * row[i];
    *out++ = static_cast<std::uint8_t>((here + row[i - 1] + 1) >> 2);
    *out++ = static_cast<std::uint8_t>((here + row[i + 1] + 2) >> 2);
  }
}

void upsample_both(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) {
  const auto down = [near, far](int i) { return 3 * near[i] + far[i]; };
  for (int i = 0; i < count; ++i) {
    const int here = 3 * down(i);
    *out++ = static_cast<std::uint8_t>((here + down(i - 1) + 8) >> 4);
    *out++ = static_cast<std::uint8_t>((here + down(i + 1) + 7) >> 4);
  }
}

// ITU-T T.871: R = Y + 1.402 Cr, G = Y - 0.34414 Cb - 0.71414 Cr, B = Y + 1.772 Cb, in 16-bit fixed point.
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width, std::uint8_t* out) {
  constexpr int kHalf = 1 << 15;
  for (int i = 0; i < width; ++i) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    *out++ = clamped(y[i] + ((91881 * red + kHalf) >> 16));
    *out++ = clamped(y[i] + ((-22554 * blue - 46802 * red + kHalf) >> 16));
    *out++ = clamped(y[i] + ((116130 * blue + kHalf) >> 16));
  }
}

void inverse_dct(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups, std::uint8_t* out,
                 std::size_t stride) {
  for (int i = 0; i < groups; ++i, coefficients += kBlockSize, out += kBlockSide) {
    inverse_dct_of_block(coefficients, kBlockSide, quantisation, out, stride);
    std::memset(coefficients, 0, kBlockSize * sizeof *coefficients);
  }
}

template <int kReduction>
void reduced_dct(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups, std::uint8_t* out,
                 std::size_t stride) {
  for (int i = 0; i < groups; ++i, coefficients += kBlockSize, out += kBlockSide >> kReduction) {
    reduced_dct_of_block(coefficients, kBlockSide, quantisation, kReduction, out, stride);
    std::memset(coefficients, 0, kBlockSize * sizeof *coefficients);
  }
}

template <Blocks kBlocks>
void alone(EntropyRun& run) {
  run_alone<1, kBlocks>(run);
}

template <Blocks kFirst, Blocks kSecond>
int in_turn(EntropyRun& first, EntropyRun& second) {
  return run_both<1, kFirst, kSecond>(first, second);
}

int decode_low_mcus(const McuPlan& plan, int first, int end, EntropyState& state, std::int16_t* coefficients) {
  return decode_low<1>(plan, first, end, state, coefficients);
}

template <bool kWanted>
void first_of_band(progressive::BandRun& run) {
  progressive::first_of_band<1, kWanted>(run);
}

template <bool kWanted>
void refine_band(progressive::BandRun& run) {
  progressive::refine_band<1, kWanted>(run);
}

void first_of_dc(progressive::DcRun& run) { progressive::first_of_dc<1>(run); }
void refine_dc(progressive::DcRun& run) { progressive::refine_dc<1>(run); }

}  // namespace

const Kernels& scalar_kernels() {
  static constexpr Kernels kKernels{
      .name = "scalar",
      .group = 1,
      .alone = {alone<Blocks::kWanted>, alone<Blocks::kSkipped>, alone<Blocks::kIgnored>},
      .in_turn = {{{in_turn<Blocks::kWanted, Blocks::kWanted>, in_turn<Blocks::kWanted, Blocks::kSkipped>},
                   {in_turn<Blocks::kSkipped, Blocks::kWanted>, in_turn<Blocks::kSkipped, Blocks::kSkipped>}}},
      .decode_low_mcus = decode_low_mcus,
      .inverse_dct = {inverse_dct, reduced_dct<1>, reduced_dct<2>, reduced_dct<3>},
      .upsample_across = upsample_across,
      .upsample_both = upsample_both,
      .ycc_to_rgb = ycc_to_rgb,
      .pass_restarts = pass_restarts_bytewise,
      .progressive = {.first = {first_of_band<false>, first_of_band<true>},
                      .refine = {refine_band<false>, refine_band<true>},
                      .first_dc = first_of_dc,
                      .refine_dc = refine_dc}};
  return kKernels;
}

}  // namespace feedline::decode::baseline
