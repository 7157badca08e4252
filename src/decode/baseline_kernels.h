// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inner loops of the baseline decoder, which every instruction set has its own version of. All versions give the
// same bytes. Stateless and thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/baseline_huffman.h"
#include "decode/baseline_input.h"

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
};

struct McuPlan {
  int blocks = 0;
  std::array<BlockPlan, kMaxBlocksInMcu> block;
};

// What decoding carries from MCU to MCU.
struct EntropyState {
  BitBuffer input;
  std::array<std::int32_t, kMaxComponents> dc{};
};

struct Kernels {
  const char* name = "";
  // Blocks side by side whose coefficients are interleaved: row r of the first, row r of the second, ..., row r + 1.
  int group = 1;

  // Decodes MCUs `first` ... `end` - 1 of a chunk into its coefficients, all zero before. Stops before one that begins
  // behind input.limit. Returns where it stopped, or -1 at a code that is none.
  int (*decode_mcus)(const McuPlan& plan, int first, int end, EntropyState& state,
                     std::int16_t* coefficients) = nullptr;
  // The same for MCUs of which only the DC values matter, to those that follow.
  int (*skip_mcus)(const McuPlan& plan, int first, int end, EntropyState& state) = nullptr;
  // Samples of `groups` groups side by side, 8 rows; the coefficients are zeros afterwards. `quantisation` in the
  // order of the rows.
  void (*inverse_dct)(std::int16_t* coefficients, const std::uint16_t* quantisation, int groups, std::uint8_t* out,
                      std::size_t stride) = nullptr;
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
};

// The plain C++ version: the reference.
const Kernels& scalar_kernels();
// One per instruction set that was compiled and that this machine has, best first.
std::span<const Kernels* const> simd_kernels();
// All that this machine can run, best first, the scalar ones last.
const std::vector<const Kernels*>& all_kernels();
const Kernels& best_kernels();

}  // namespace feedline::decode::baseline
