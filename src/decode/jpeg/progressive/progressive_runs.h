// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the progressive decoder and their data, compiled for every instruction set (listed in
// baseline_kernels.h). Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>

#include "decode/jpeg/baseline/baseline_huffman.h"
#include "decode/jpeg/baseline/baseline_input.h"

namespace feedline::decode::progressive {

inline constexpr int kMaxScanComponents = 3;
inline constexpr int kMaxScanBlocks = 6;

// Consecutive blocks of a scan in one row, and the progress in them. A loop stops at `end`, before a block that begins
// after input.limit, or with `failed`.
//
// A row's coefficients have the layout of the inverse DCT: `Kernels::group` blocks are interleaved, row by row. Bit k
// of a mask is set if the k-th coefficient in zigzag order is not zero.

// AC coefficients first ... last of one component.
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

// DC coefficients of all components of a scan.
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
  // Decode each coefficient's first bits, or one more bit. Indexed by whether coefficients are needed.
  std::array<Band, 2> first{}, refine{};
  Dc first_dc = nullptr, refine_dc = nullptr;
};

}  // namespace feedline::decode::progressive
