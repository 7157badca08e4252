// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/block_smoothing.h"

// The estimate of a coefficient is a weighted sum of 25 DC coefficients, from the block and the two rings of blocks
// around it. Blocks outside the image repeat the edge. An estimate replaces a coefficient only if the coefficient is
// zero and its last bits are not known. If no scan contained any of the first nine AC coefficients, all nine are
// estimated with one set of weights, and the DC coefficient is smoothed too. Otherwise, the first five AC coefficients
// are estimated with another set of weights.
//
// The estimates must use the file's unsmoothed DC coefficients, so these are copied first.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include <jpegint.h>

namespace feedline::decode {
namespace {

constexpr int kReach = 2;  // blocks on each side
constexpr int kSide = 2 * kReach + 1;
constexpr int kEstimated = 10;  // coefficients 0 to 9 in zigzag order
// The positions of the estimated coefficients in a block, row by row.
constexpr std::array<int, kEstimated> kNatural{0, 1, 8, 16, 9, 2, 3, 10, 17, 24};
// Weights are in units of 1/256.
constexpr int kScaleBits = 8;

using Weights = std::array<std::array<int, kSide>, kSide>;

constexpr Weights transposed(const Weights& weights) {
  Weights result{};
  for (std::size_t y = 0; y < kSide; ++y)
    for (std::size_t x = 0; x < kSide; ++x) result[y][x] = weights[x][y];
  return result;
}

struct Estimate {
  int zigzag;
  Weights weights;
};

// These weights are for horizontal coefficients, whose index increases along a row. Vertical coefficients have the
// transposed weights.
constexpr Weights kMean{
    {{-2, -6, -8, -6, -2}, {-6, 6, 42, 6, -6}, {-8, 42, 152, 42, -8}, {-6, 6, 42, 6, -6}, {-2, -6, -8, -6, -2}}};
constexpr Weights kFirst{
    {{-1, -1, 0, 1, 1}, {-3, 13, 0, -13, 3}, {-3, 38, 0, -38, 3}, {-3, 13, 0, -13, 3}, {-1, -1, 0, 1, 1}}};
constexpr Weights kSecond{{{0, 0, 0, 0, 0}, {0, 2, -5, 2, 0}, {1, 7, -14, 7, 1}, {0, 2, -5, 2, 0}, {0, 0, 0, 0, 0}}};
constexpr Weights kDiagonal{{{-1, 0, 0, 0, 1}, {0, 9, 0, -9, 0}, {0, 0, 0, 0, 0}, {0, -9, 0, 9, 0}, {1, 0, 0, 0, -1}}};
constexpr Weights kThird{{{0, 0, 0, 0, 0}, {0, 1, 0, -1, 0}, {0, 2, 0, -2, 0}, {0, 1, 0, -1, 0}, {0, 0, 0, 0, 0}}};
constexpr Weights kMixed{{{0, 0, 0, 0, 0}, {0, 1, -3, 1, 0}, {0, 0, 0, 0, 0}, {0, -1, 3, -1, 0}, {0, 0, 0, 0, 0}}};
constexpr std::array<Estimate, kEstimated> kWithoutAc{{{1, kFirst},
                                                       {2, transposed(kFirst)},
                                                       {3, transposed(kSecond)},
                                                       {4, kDiagonal},
                                                       {5, kSecond},
                                                       {6, kThird},
                                                       {7, kMixed},
                                                       {8, transposed(kMixed)},
                                                       {9, transposed(kThird)},
                                                       {0, kMean}}};

constexpr Weights kFirstPartial{
    {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {-7, 50, 0, -50, 7}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}};
constexpr Weights kSecondPartial{
    {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {-1, 13, -24, 13, -1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}}};
constexpr Weights kDiagonalPartial{
    {{0, -1, 0, 1, 0}, {-1, 10, 0, -10, 1}, {0, 0, 0, 0, 0}, {1, -10, 0, 10, -1}, {0, 1, 0, -1, 0}}};
constexpr std::array<Estimate, 5> kWithPartialAc{{{1, kFirstPartial},
                                                  {2, transposed(kFirstPartial)},
                                                  {3, transposed(kSecondPartial)},
                                                  {4, kDiagonalPartial},
                                                  {5, kSecondPartial}}};

// The DC coefficients of five rows, from top to bottom.
using Rows = std::array<const std::int16_t*, kSide>;

long weighted_sum(const Rows& rows, const std::array<int, kSide>& columns, const Weights& weights) {
  long sum = 0;
  for (std::size_t y = 0; y < kSide; ++y)
    for (std::size_t x = 0; x < kSide; ++x) sum += long{weights[y][x]} * rows[y][columns[x]];
  return sum;
}

// Divides by the coefficient's quantisation step, rounds, and limits the result to values that the missing bits can
// represent. bits_left: -1 if no bit is known.
int quantised(long sum, long step, int bits_left) {
  long magnitude = ((step << (kScaleBits - 1)) + std::labs(sum)) / (step << kScaleBits);
  if (bits_left > 0) magnitude = std::min(magnitude, (1L << bits_left) - 1);
  return static_cast<int>(sum < 0 ? -magnitude : magnitude);
}

int padded_rows(const jpeg_component_info& component) {
  const int factor = component.v_samp_factor, rows = static_cast<int>(component.height_in_blocks);
  return (rows + factor - 1) / factor * factor;
}

// Returns the five block rows whose coefficients are used for row `row`. libjpeg-turbo numbers rows as if each row of
// MCUs had as many block rows as this one, but the last row of MCUs may have fewer.
std::array<int, kSide> rows_around(const jpeg_decompress_struct& jpeg, const jpeg_component_info& component, int row) {
  const int factor = component.v_samp_factor, mcu_rows = static_cast<int>(jpeg.total_iMCU_rows);
  const int mcu_row = row / factor;
  int block_rows = factor;
  if (mcu_row == mcu_rows - 1 && static_cast<int>(component.height_in_blocks) % factor != 0)
    block_rows = static_cast<int>(component.height_in_blocks) % factor;
  const int number = mcu_row * block_rows + row % factor, last = mcu_rows * block_rows - 1;
  const int above = std::min(number, kReach), below = std::min(last - number, kReach);
  std::array<int, kSide> rows{};
  for (int offset = -kReach; offset <= kReach; ++offset)
    rows[static_cast<std::size_t>(offset + kReach)] = row + std::clamp(offset, -above, below);
  return rows;
}

}  // namespace

bool BlockSmoothing::applies_to(const jpeg_decompress_struct& jpeg) {
  if (!jpeg.progressive_mode || jpeg.coef_bits == nullptr) return false;
  bool is_useful = false;
  for (int c = 0; c < jpeg.num_components; ++c) {
    const JQUANT_TBL* const table = jpeg.comp_info[c].quant_table;
    if (table == nullptr || jpeg.coef_bits[c][0] < 0) return false;
    for (int k = 0; k < kEstimated; ++k) {
      if (table->quantval[kNatural[static_cast<std::size_t>(k)]] == 0) return false;
      is_useful |= k > 0 && jpeg.coef_bits[c][k] != 0;
    }
  }
  return is_useful;
}

void BlockSmoothing::prepare(const jpeg_decompress_struct& jpeg) {
  std::size_t most = 0;
  for (int c = 0; c < jpeg.num_components; ++c)
    most = std::max(most, std::size_t{jpeg.comp_info[c].width_in_blocks} *
                              static_cast<std::size_t>(padded_rows(jpeg.comp_info[c])));
  if (means_.size() < most) means_.resize(most);
}

void BlockSmoothing::apply(jpeg_decompress_struct& jpeg) {
  for (int c = 0; c < jpeg.num_components; ++c) smooth_component(jpeg, c);
}

void BlockSmoothing::smooth_component(jpeg_decompress_struct& jpeg, int c) {
  const jpeg_component_info& component = jpeg.comp_info[c];
  const auto blocks = [&](int row) {
    return (*jpeg.mem->access_virt_barray)(reinterpret_cast<j_common_ptr>(&jpeg), jpeg.coef->coef_arrays[c],
                                           static_cast<JDIMENSION>(row), 1, TRUE)[0];
  };
  const int across = static_cast<int>(component.width_in_blocks);
  const auto means = [&](int row) { return means_.data() + std::ptrdiff_t{row} * across; };
  for (int y = 0; y < padded_rows(component); ++y) {
    const JBLOCK* const row = blocks(y);
    for (int x = 0; x < across; ++x) means(y)[x] = row[x][0];
  }

  const int(&bits_left)[DCTSIZE2] = jpeg.coef_bits[c];
  const bool means_only = std::all_of(bits_left + 1, bits_left + kEstimated, [](int bits) { return bits < 0; });
  const std::span<const Estimate> estimates = means_only ? std::span<const Estimate>(kWithoutAc) : kWithPartialAc;
  const UINT16* const steps = component.quant_table->quantval;
  for (int y = 0; y < static_cast<int>(component.height_in_blocks); ++y) {
    const std::array<int, kSide> around = rows_around(jpeg, component, y);
    Rows rows{};
    for (std::size_t i = 0; i < kSide; ++i) rows[i] = means(around[i]);
    JBLOCK* const row = blocks(y);
    for (int x = 0; x < across; ++x) {
      std::array<int, kSide> columns{};
      for (int i = 0; i < kSide; ++i) columns[static_cast<std::size_t>(i)] = std::clamp(x + i - kReach, 0, across - 1);
      for (const Estimate& estimate : estimates) {
        const int bits = bits_left[estimate.zigzag], at = kNatural[static_cast<std::size_t>(estimate.zigzag)];
        const bool is_mean = estimate.zigzag == 0;
        if (!is_mean && (bits == 0 || row[x][at] != 0)) continue;
        const long sum = steps[0] * weighted_sum(rows, columns, estimate.weights);
        row[x][at] = static_cast<JCOEF>(quantised(sum, steps[at], is_mean ? -1 : bits));
      }
    }
  }
}

}  // namespace feedline::decode
