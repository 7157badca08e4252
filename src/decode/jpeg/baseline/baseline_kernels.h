// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the baseline decoder, which every instruction set has its own version of. All versions give the
// same bytes. Stateless and thread-safe.

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
// Bytes that a kernel may read and write past the last sample of a row, and read before its first.
inline constexpr std::size_t kRowSlack = 64;

// MCUs are decoded in chunks whose coefficients stay in the fastest cache. A multiple of every `group`.
inline constexpr int kChunkMcus = 8;
inline constexpr int kMaxChunkBlocks = kChunkMcus * kMaxBlocksInMcu;

// One block of an MCU.
struct BlockPlan {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  const SkipTable* skip = nullptr;  // may be null
  int component = 0;
  int row = 0;     // of the chunk's rows of blocks: where in the coefficients that row starts, in blocks
  int column = 0;  // within the MCU's part of the row
  int across = 1;  // blocks that an MCU has in the row
  // Of decode_low_mcus: the coefficients wanted are those before, by their index in zigzag order plus one. Below 64
  // only where there is `skip`.
  unsigned end = kBlockSize;
};

struct McuPlan {
  int blocks = 0;
  bool can_skip = false;  // every block has `skip`
  std::array<BlockPlan, kMaxBlocksInMcu> block;
};

// What decoding carries from MCU to MCU.
struct EntropyState {
  BitBuffer input;
  std::array<std::int32_t, kMaxComponents> dc{};
};

// MCUs that are decoded one after the other, and how far that is. It may stop anywhere and go on later.
struct EntropyRun {
  const McuPlan* plan = nullptr;
  EntropyState* state = nullptr;
  std::int16_t* coefficients = nullptr;  // of a chunk, all zero before; null: only the DC values matter
  int next = 0, end = 0;                 // the MCU that is begun, or is to be; in the chunk if there is one
  int block = 0;                         // in that MCU
  unsigned index = 0;                    // in that block, in zigzag order plus one; 0: not begun
  bool failed = false;                   // came to a code that is none
};

// What happens to a run's blocks.
enum class Blocks : std::uint8_t {
  kWanted,   // coefficients are stored
  kSkipped,  // read for their length and DC values, by the tables for that
  kIgnored,  // the same without such tables
};

inline Blocks blocks_of(const EntropyRun& run) {
  if (run.coefficients != nullptr) return Blocks::kWanted;
  return run.plan->can_skip ? Blocks::kSkipped : Blocks::kIgnored;
}

struct Kernels {
  const char* name = "";
  // Blocks side by side whose coefficients are interleaved: row r of the first, row r of the second, ..., row r + 1.
  int group = 1;

  // Decodes a run to its end, or to the first MCU that begins behind input.limit, or to a code that is none. By Blocks.
  std::array<void (*)(EntropyRun& run), 3> alone{};
  // The same for two runs in turn, of wanted or skipped blocks each, until one of them stops: 0, or 1 for `second`.
  using InTurn = int (*)(EntropyRun& first, EntropyRun& second);
  std::array<std::array<InTurn, 2>, 2> in_turn{};
  // Decodes MCUs `first` ... `end` - 1 of a chunk, but stores few of the coefficients from each block's `end` on, or
  // none. Stops where a run does. Returns where it stopped, or -1 at a code that is none.
  int (*decode_low_mcus)(const McuPlan& plan, int first, int end, EntropyState& state,
                         std::int16_t* coefficients) = nullptr;
  // Samples of `groups` groups side by side, 8 >> i rows by the i-th function (baseline_reduced_dct.h, but for the
  // first); the coefficients are zeros afterwards. `quantisation` in the order of the rows.
  using InverseDct = void (*)(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups,
                              std::uint8_t* out, std::size_t stride);
  std::array<InverseDct, kMaxReduction + 1> inverse_dct{};
  // Fancy upsampling of `count` samples to twice as many: across (2 x 1), or across and down (2 x 2), where `near`
  // is the row of samples that the output row lies in and `far` the other one that it lies next to. The samples on
  // both sides of the row are read too: at an image's edge they must equal its last.
  void (*upsample_across)(const std::uint8_t* row, int count, std::uint8_t* out) = nullptr;
  void (*upsample_both)(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) = nullptr;
  // Writes nothing past the last pixel.
  void (*ycc_to_rgb)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int width,
                     std::uint8_t* out) = nullptr;
  // As pass_restarts_bytewise() in restart_scan.h.
  const std::uint8_t* (*pass_restarts)(const std::uint8_t* from, const std::uint8_t* end, int number,
                                       int count) = nullptr;
  progressive::Kernels progressive;
};

// The plain C++ version: the reference.
const Kernels& scalar_kernels();
// One per instruction set that was compiled and that this machine has, best first.
std::span<const Kernels* const> simd_kernels();
// All that this machine can run, best first, the scalar ones last.
const std::vector<const Kernels*>& all_kernels();
const Kernels& best_kernels();

}  // namespace feedline::decode::baseline
