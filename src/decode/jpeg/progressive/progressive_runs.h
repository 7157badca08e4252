// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the progressive decoder and their data, compiled for each instruction set (listed in
// baseline_kernels.h). Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>

#include "decode/jpeg/baseline/baseline_huffman.h"
#include "decode/jpeg/baseline/baseline_input.h"

namespace feedline::decode::progressive {

inline constexpr int kMaxScanComponents = 3;
inline constexpr int kMaxScanBlocks = 6;

// A run is a sequence of consecutive blocks in one row of a scan, and the progress in decoding them. A loop stops at
// `end`, before a block that begins after input.limit, or if `failed` is set.
//
// The coefficients of a row have the layout of the inverse DCT: `Kernels::group` blocks are interleaved, row by row.
// Bit k of a mask is set if the k-th coefficient in zigzag order is not zero.

// Decodes the AC coefficients from `first` to `last` of one component.
struct BandRun {
  const baseline::HuffmanTable* table = nullptr;  // for HuffmanUse::kBand
  unsigned first = 1, last = 63;                  // in zigzag order
  int shift = 0;                                  // the bit position that this scan adds to each coefficient
  baseline::BitBuffer input;
  int blocks_ended = 0;                  // number of blocks from `next` on without more data in this scan
  std::uint64_t* masks = nullptr;        // starting at block 0 of the row
  std::int16_t* coefficients = nullptr;  // the row's values; null if only masks and bits are needed
  int first_column = 0;                  // the block of the first coefficient in the row
  int next = 0, end = 0;                 // blocks
  bool failed = false;
};

// Decodes DC coefficients of all components of a scan.
struct DcRun {
  struct Block {
    const baseline::HuffmanTable* table = nullptr;  // unused by refinement scans
    int component = 0;                              // index in the scan
    std::int16_t* coefficients = nullptr;           // the row's coefficients
    int column = 0, across = 1;                     // position in the MCU, and the number of its blocks in the row
  };
  std::array<Block, kMaxScanBlocks> block;
  int blocks = 0;
  bool is_wanted = false;  // whether there are coefficients to write to
  int shift = 0;
  baseline::BitBuffer input;
  std::array<std::int32_t, kMaxScanComponents> dc{};  // the last values, without the shift
  int first_column = 0;                               // the MCU of the first coefficient in the row
  int next = 0, end = 0;                              // MCUs
  bool failed = false;
};

struct Kernels {
  using Band = void (*)(BandRun& run);
  using Dc = void (*)(DcRun& run);
  // Decode the first bits of each coefficient, or refine each by one bit. The array index is 1 if the coefficients are
  // needed, otherwise 0.
  std::array<Band, 2> first{}, refine{};
  Dc first_dc = nullptr, refine_dc = nullptr;
};

}  // namespace feedline::decode::progressive
