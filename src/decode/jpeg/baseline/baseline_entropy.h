// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the bits of a scan into coefficients. The kernels of each instruction set include this file and inline all
// functions.

#include <bit>
#include <cstring>

#include "decode/jpeg/baseline/baseline_kernels.h"

#define FEEDLINE_INLINE inline __attribute__((always_inline))
#define FEEDLINE_INLINE_LAMBDA __attribute__((always_inline))

namespace feedline::decode::baseline {

// Maps a zigzag index to the coefficient's position in a group of `kGroup` interleaved blocks. The index is advanced
// before it is used, so entry k has the position of coefficient k - 1. Valid files never use entries above 64.
template <int kGroup>
struct Places {
  static constexpr std::array<std::uint8_t, kBlockSize + 1> kAt = [] {
    std::array<std::uint8_t, kBlockSize + 1> at{};
    int row = 0, column = 0;
    for (int k = 1; k <= kBlockSize; ++k) {
      at[k] = static_cast<std::uint8_t>(row * kBlockSide * kGroup + column);
      const bool up = (row + column) % 2 == 0;
      if (up ? column == kBlockSide - 1 : row != kBlockSide - 1 && column == 0)
        ++row;
      else if (up ? row == 0 : row == kBlockSide - 1)
        ++column;
      else
        row += up ? -1 : 1, column += up ? 1 : -1;
    }
    return at;
  }();
};

// Returns the first coefficient of a block in MCU `mcu` of the chunk.
template <int kGroup>
FEEDLINE_INLINE std::int16_t* find_sample(const BlockPlan& block, int mcu, std::int16_t* coefficients) {
  const auto column = static_cast<std::size_t>(mcu * block.across + block.column), in_group = column % kGroup;
  return coefficients + (static_cast<std::size_t>(block.row) + column - in_group) * kBlockSize + in_group * kBlockSide;
}

FEEDLINE_INLINE std::uint64_t load_big_endian(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

// Refills the buffer to at least 56 valid bits, which is enough for any symbol with its code and value.
FEEDLINE_INLINE void fill(BitBuffer& input) {
  input.bits |= load_big_endian(input.next) >> input.count;
  input.next += (63 - input.count) >> 3;
  input.count |= 56;
}

FEEDLINE_INLINE void take(BitBuffer& input, unsigned bits) {
  input.bits <<= bits & 63;
  input.count -= bits & 63;
}

template <int kBits>
FEEDLINE_INLINE std::size_t index_of(const BitBuffer& input) {
  return static_cast<std::size_t>(input.bits >> (64 - kBits));
}

// Requires: the entry has a value, and all bits that it consumes are valid.
FEEDLINE_INLINE std::int16_t value_of(const BitBuffer& input, HuffmanEntry entry) {
  const auto code_and_value = static_cast<std::uint32_t>(input.bits >> ((64 - entry) & 63));
  return static_cast<std::int16_t>(code_and_value + (entry >> 16));
}

FEEDLINE_INLINE unsigned advance_of(HuffmanEntry entry) { return entry >> 8 & 255; }

// Decodes a symbol that is not in the lookup table, and consumes its bits. Returns false if the code is invalid.
struct LongSymbol {
  int run = 0, size = 0;
  std::int16_t value = 0;
};

__attribute__((noinline)) inline bool long_symbol(const HuffmanTable& table, HuffmanUse use, BitBuffer& input,
                                                  LongSymbol& out) {
  fill(input);
  const HuffmanTable::Code code = table.code_in(static_cast<std::uint32_t>(input.bits >> 48), HuffmanTable::kIndexBits);
  if (code.length == 0) return false;
  take(input, static_cast<unsigned>(code.length));
  out.size = use == HuffmanUse::kDc ? code.symbol : code.symbol & 15;
  out.run = use == HuffmanUse::kDc ? 0 : code.symbol >> 4;
  out.value = 0;
  if (out.size > 0) {
    const auto raw = static_cast<std::int32_t>(input.bits >> (64 - out.size));
    out.value = static_cast<std::int16_t>(raw >> (out.size - 1) != 0 ? raw : raw - (1 << out.size) + 1);
    take(input, static_cast<unsigned>(out.size));
  }
  return true;
}

FEEDLINE_INLINE bool decode_dc(const HuffmanTable& table, BitBuffer& input, std::int32_t& dc) {
  fill(input);
  const HuffmanEntry entry = table.entries[index_of<HuffmanTable::kIndexBits>(input)];
  if (advance_of(entry) >= kLongCode) [[unlikely]] {
    LongSymbol symbol;
    BitBuffer copy = input;
    if (!long_symbol(table, HuffmanUse::kDc, copy, symbol)) return false;
    input = copy;
    dc += symbol.value;
    return true;
  }
  dc += value_of(input, entry);
  take(input, entry);
  return true;
}

// Handles the entry that ends a sequence of stored values.
enum class AcEnd : std::uint8_t { kBlockDone, kGoOn, kNoCode };

// `entry` raises the index above 63; none of its bits have been consumed yet.
template <typename Store>
FEEDLINE_INLINE AcEnd end_run(const HuffmanTable& table, HuffmanEntry entry, BitBuffer& input, unsigned& index,
                              Store store) {
  const unsigned advance = advance_of(entry);
  if (advance < kEndOfBlock) {
    if (index + advance != kBlockSize) return AcEnd::kNoCode;
    store(kBlockSize, value_of(input, entry));
    take(input, entry);
    return AcEnd::kBlockDone;
  }
  if (advance < kLongCode) {
    take(input, entry);
    return AcEnd::kBlockDone;
  }
  LongSymbol symbol;
  BitBuffer copy = input;  // a reference to `input` would keep it out of registers
  if (!long_symbol(table, HuffmanUse::kAc, copy, symbol)) return AcEnd::kNoCode;
  input = copy;
  if (symbol.size == 0 && symbol.run != 15) return AcEnd::kBlockDone;
  index += static_cast<unsigned>(symbol.run) + 1;
  if (index > kBlockSize) return AcEnd::kNoCode;
  store(index, symbol.value);
  return index == kBlockSize ? AcEnd::kBlockDone : AcEnd::kGoOn;
}

// Skips the rest of a block, starting at `index`, which is counted as in `Places`.
FEEDLINE_INLINE bool skip_ac(const HuffmanTable& table, const SkipTable& skip, BitBuffer& input, unsigned index) {
  const auto ignore = [](unsigned, std::int16_t) FEEDLINE_INLINE_LAMBDA {};
  for (;;) {
    unsigned entry = skip.entries[index_of<SkipTable::kIndexBits>(input)];
    fill(input);
    unsigned next = index + (entry >> 8);
    while (next < kBlockSize) {
      index = next;
      take(input, entry);
      entry = skip.entries[index_of<SkipTable::kIndexBits>(input)];
      fill(input);
      next = index + (entry >> 8);
    }
    const unsigned advance = entry >> 8;
    const bool is_end = advance >= kEndOfBlock && advance < kLongCode && next < kEndOfBlock + kBlockSize;
    if (is_end || next == kBlockSize) {
      take(input, entry);
      return true;
    }
    // a long code, or symbols that already belong to the next block: one symbol at a time
    const HuffmanEntry single = table.entries[index_of<HuffmanTable::kIndexBits>(input)];
    if (index + advance_of(single) < kBlockSize) {
      index += advance_of(single);
      take(input, single);
      continue;
    }
    const AcEnd end = end_run(table, single, input, index, ignore);
    if (end != AcEnd::kGoOn) return end == AcEnd::kBlockDone;
  }
}

// Calls store(k, value) for each coefficient; k is its index in zigzag order, plus one. Stores few or no coefficients
// at index `end` or later.
template <typename Store>
FEEDLINE_INLINE bool decode_low_ac(const HuffmanTable& table, const SkipTable* skip, unsigned end, BitBuffer& input,
                                   Store store) {
  unsigned index = 1;
  for (;;) {
    HuffmanEntry entry = table.entries[index_of<HuffmanTable::kIndexBits>(input)];
    fill(input);
    unsigned next = index + advance_of(entry);
    while (next < end) {
      store(next, value_of(input, entry));
      index = next;
      take(input, entry);
      entry = table.entries[index_of<HuffmanTable::kIndexBits>(input)];
      fill(input);
      next = index + advance_of(entry);
    }
    if (next < kBlockSize) return skip_ac(table, *skip, input, index);
    const AcEnd block_end = end_run(table, entry, input, index, store);
    if (block_end != AcEnd::kGoOn) return block_end == AcEnd::kBlockDone;
  }
}

template <int kGroup>
FEEDLINE_INLINE int decode_low(const McuPlan& plan, int first, int end, EntropyState& state,
                               std::int16_t* coefficients) {
  BitBuffer input = state.input;
  int mcu = first;
  for (; mcu < end && input.next <= input.limit; ++mcu)
    for (int i = 0; i < plan.blocks; ++i) {
      const BlockPlan& block = plan.block[i];
      std::int16_t* const out = find_sample<kGroup>(block, mcu, coefficients);
      std::int32_t& dc = state.dc[block.component];
      if (!decode_dc(*block.dc, input, dc)) return -1;
      *out = static_cast<std::int16_t>(dc);
      const auto store = [out](unsigned k, std::int16_t value)
                             FEEDLINE_INLINE_LAMBDA { out[Places<kGroup>::kAt[k]] = value; };
      if (!decode_low_ac(*block.ac, block.skip, block.end, input, store)) return -1;
    }
  state.input = input;
  return mcu;
}

}  // namespace feedline::decode::baseline
