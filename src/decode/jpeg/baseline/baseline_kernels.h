// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the baseline decoder, compiled for each instruction set. All versions produce the same bytes.
// Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/jpeg/baseline/baseline_huffman.h"
#include "decode/jpeg/baseline/baseline_input.h"
#include "decode/jpeg/baseline/baseline_reduced_dct.h"
#include "decode/jpeg/progressive/progressive_runs.h"

namespace feedline::decode::baseline {

inline constexpr int kBlockSide = 8;
inline constexpr int kBlockSize = 64;
inline constexpr int kMaxComponents = 3;
inline constexpr int kMaxBlocksInMcu = 6;
// The number of bytes that a kernel may read and write after the last sample of a row, and read before its first
// sample.
inline constexpr std::size_t kRowSlack = 64;

// The number of MCUs in a chunk, whose coefficients fit in the L1 cache. This number is a multiple of every `group`.
inline constexpr int kChunkMcus = 8;
inline constexpr int kMaxChunkBlocks = kChunkMcus * kMaxBlocksInMcu;

// The location and the tables of one block of an MCU.
struct BlockPlan {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  const SkipTable* skip = nullptr;  // may be null
  int component = 0;
  int row = 0;     // the offset of each row of the chunk's blocks in the coefficients, in blocks
  int column = 0;  // within the MCU's part of the row
  int across = 1;  // blocks per MCU in the row
  // For decode_low_mcus: only coefficients before this zigzag index (plus one) are needed. The index is below 64 only
  // if `skip` is set.
  unsigned end = kBlockSize;
};

struct McuPlan {
  int blocks = 0;
  bool can_skip = false;  // every block has `skip`
  std::array<BlockPlan, kMaxBlocksInMcu> block;
};

// The state that is passed from MCU to MCU.
struct EntropyState {
  BitBuffer input;
  std::array<std::int32_t, kMaxComponents> dc{};
};

// A sequence of MCUs, and the progress in decoding it. Decoding can stop at any point and resume later.
struct EntropyRun {
  const McuPlan* plan = nullptr;
  EntropyState* state = nullptr;
  std::int16_t* coefficients = nullptr;  // of a chunk, zeroed beforehand; null: only the DC values are needed
  int next = 0, end = 0;                 // the current or next MCU; relative to the chunk if there is one
  int block = 0;                         // index in that MCU
  unsigned index = 0;                    // index in that block, in zigzag order plus one; 0: not begun
  bool failed = false;                   // reached an invalid code
};

// How the blocks of a run are processed.
enum class Blocks : std::uint8_t {
  kWanted,   // coefficients are stored
  kSkipped,  // only skipped and their DC values read, using skip tables
  kIgnored,  // the same without such tables
};

inline Blocks blocks_of(const EntropyRun& run) {
  if (run.coefficients != nullptr) return Blocks::kWanted;
  return run.plan->can_skip ? Blocks::kSkipped : Blocks::kIgnored;
}

struct Kernels {
  const char* name = "";
  // The number of adjacent blocks whose coefficients are interleaved: row r of the first block, row r of the second,
  // ..., then row r + 1.
  int group = 1;

  // Decodes a run to its end, to the first MCU that begins after input.limit, or to an invalid code. Indexed by Blocks.
  std::array<void (*)(EntropyRun& run), 3> alone{};
  // Decodes two runs alternately, each with wanted or skipped blocks, until one of them stops. Returns 0 if the first
  // run has stopped, or 1 if `second` has stopped.
  using InTurn = int (*)(EntropyRun& first, EntropyRun& second);
  std::array<std::array<InTurn, 2>, 2> in_turn{};
  // Decodes MCUs `first` ... `end` - 1 of a chunk, storing few or no coefficients at or after each block's `end`. Stops
  // under the same conditions as decoding a run. Returns the MCU at which it stopped, or -1 at an invalid code.
  int (*decode_low_mcus)(const McuPlan& plan, int first, int end, EntropyState& state,
                         std::int16_t* coefficients) = nullptr;
  // Computes the samples of `groups` adjacent groups. Function i produces 8 >> i rows (baseline_reduced_dct.h for i >
  // 0). Zeroes the coefficients. `quantisation` is in row order.
  using InverseDct = void (*)(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups,
                              std::uint8_t* out, std::size_t stride);
  std::array<InverseDct, kMaxReduction + 1> inverse_dct{};
  // Apply fancy upsampling to `count` samples: horizontally (2 x 1), or in both directions (2 x 2). `near` is the
  // sample row that contains the output row, and `far` is the next closest sample row. The samples before and after the
  // row are also read; at the edge of an image, they must equal the row's nearest sample.
  void (*upsample_across)(const std::uint8_t* row, int count, std::uint8_t* out) = nullptr;
  void (*upsample_both)(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) = nullptr;
  // Does not write past the last pixel.
  void (*ycc_to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                     std::uint8_t* out) = nullptr;
  // Like pass_restarts_bytewise() in restart_scan.h.
  const std::uint8_t* (*pass_restarts)(const std::uint8_t* from, const std::uint8_t* end, int number,
                                       int count) = nullptr;
  progressive::Kernels progressive;
};

// Returns the scalar kernels, the reference implementation.
const Kernels& scalar_kernels();
// Returns the kernels for each compiled instruction set that this machine supports, best first.
std::span<const Kernels* const> simd_kernels();
// Returns all kernels that this machine supports, best first; the scalar kernels are last.
const std::vector<const Kernels*>& all_kernels();
const Kernels& best_kernels();

}  // namespace feedline::decode::baseline
