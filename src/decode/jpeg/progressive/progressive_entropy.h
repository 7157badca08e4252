// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes the bits of progressive scans into coefficients (see progressive_decoder.cpp). Each instruction set's kernels
// include this file, like baseline_entropy.h.

#include <algorithm>
#include <bit>

#include "decode/jpeg/baseline/baseline_entropy.h"
#include "decode/jpeg/progressive/progressive_runs.h"

namespace feedline::decode::progressive {

using baseline::advance_of;
using baseline::BitBuffer;
using baseline::fill;
using baseline::HuffmanEntry;
using baseline::HuffmanTable;
using baseline::HuffmanUse;
using baseline::index_of;
using baseline::kBlockSide;
using baseline::kBlockSize;
using baseline::kEndOfBlock;
using baseline::kLongCode;
using baseline::Places;
using baseline::take;
using baseline::value_of;

inline constexpr int kSixteenZeros = 15;  // the run, with size 0

template <int kGroup>
FEEDLINE_INLINE std::int16_t* block_at(std::int16_t* row, int column) {
  const auto at = static_cast<std::size_t>(column), in_group = at % kGroup;
  return row + (at - in_group) * kBlockSize + in_group * kBlockSide;
}

// A symbol that ends a sequence of values stored from the table. If `advance` is kEndOfBlock, `value` blocks end,
// including this one.
struct BandSymbol {
  unsigned advance = 0;
  std::int16_t value = 0;
};

// Returns false if the code is invalid.
__attribute__((noinline)) inline bool long_band_symbol(const HuffmanTable& table, BitBuffer& input, BandSymbol& out) {
  baseline::LongSymbol symbol;
  if (!baseline::long_symbol(table, HuffmanUse::kAc, input, symbol)) return false;
  out = {static_cast<unsigned>(symbol.run) + 1, symbol.value};
  if (symbol.size > 0 || symbol.run == kSixteenZeros) return true;
  const auto more = symbol.run == 0 ? 0 : static_cast<int>(input.bits >> (64 - symbol.run));
  out = {kEndOfBlock, static_cast<std::int16_t>((1 << symbol.run) + more)};
  take(input, static_cast<unsigned>(symbol.run));
  return true;
}

// `entry` is the next entry in `input`, which has not been consumed yet.
FEEDLINE_INLINE bool take_symbol(const HuffmanTable& table, HuffmanEntry entry, BitBuffer& input, BandSymbol& out) {
  if (advance_of(entry) >= kLongCode) [[unlikely]] {
    BitBuffer copy = input;  // a reference to `input` would keep it out of registers
    if (!long_band_symbol(table, copy, out)) return false;
    input = copy;
    return true;
  }
  out = {advance_of(entry), value_of(input, entry)};
  take(input, entry);
  return true;
}

template <int kGroup, bool kWanted>
struct FirstBits {
  const BandRun& run;
  std::int16_t* out;
  std::uint64_t mask;

  FEEDLINE_INLINE void put(unsigned k, std::int16_t value) {
    const auto shifted = static_cast<std::int16_t>(value << run.shift);
    if constexpr (kWanted) out[Places<kGroup>::kAt[k + 1]] = shifted;
    mask |= std::uint64_t{shifted != 0} << k;
  }
};

// Decodes one block. Returns the number of blocks that end here, including this one: 0 if all coefficients of the block
// were present, or -1 if a code is invalid or exceeds the band.
template <int kGroup, bool kWanted>
FEEDLINE_INLINE int first_of_block(const BandRun& run, BitBuffer& input, FirstBits<kGroup, kWanted>& to) {
  const HuffmanEntry* const table = run.table->entries.data();
  const unsigned last = run.last;
  unsigned index = run.first - 1;
  fill(input);
  for (;;) {
    HuffmanEntry entry = table[index_of<HuffmanTable::kIndexBits>(input)];
    fill(input);  // parallel to the look-up, as in baseline_turns.h
    unsigned k = index + advance_of(entry);
    if (k < last) [[likely]] {
      to.put(k, value_of(input, entry));
      take(input, entry);
      index = k;
      entry = table[index_of<HuffmanTable::kIndexBits>(input)];
      k = index + advance_of(entry);
      if (k < last) [[likely]] {
        to.put(k, value_of(input, entry));
        take(input, entry);
        index = k;
        continue;
      }
    }
    BandSymbol symbol;
    if (!take_symbol(*run.table, entry, input, symbol)) return -1;
    if (symbol.advance == kEndOfBlock) return symbol.value;
    index += symbol.advance;
    if (index > last) return -1;
    to.put(index, symbol.value);
    if (index == last) return 0;
  }
}

template <int kGroup, bool kWanted>
FEEDLINE_INLINE void first_of_band(BandRun& run) {
  BitBuffer input = run.input;
  int next = run.next, ended = run.blocks_ended;
  while (next < run.end) {
    if (ended > 0) {
      const int passed = std::min(ended, run.end - next);
      ended -= passed;
      next += passed;
      continue;
    }
    if (input.next > input.limit) break;
    FirstBits<kGroup, kWanted> to{run, nullptr, run.masks[next]};
    if constexpr (kWanted) to.out = block_at<kGroup>(run.coefficients, next - run.first_column);
    ended = first_of_block<kGroup, kWanted>(run, input, to);
    run.masks[next] = to.mask;
    if (ended < 0) [[unlikely]] {
      run.failed = true;
      break;
    }
    if (ended > 0) --ended;
    ++next;
  }
  run.input = input;
  run.next = next;
  run.blocks_ended = ended;
}

// Reads one more bit for each nonzero coefficient in `which`, and moves the coefficient away from zero if the bit is
// set.
template <int kGroup, bool kWanted>
FEEDLINE_INLINE void correct(std::uint64_t which, int shift, std::int16_t* out, BitBuffer& input) {
  constexpr unsigned kAtOnce = 56;  // the bits that fill() guarantees
  while (which != 0) {
    fill(input);
    const unsigned count = std::min(static_cast<unsigned>(std::popcount(which)), kAtOnce);
    if constexpr (kWanted) {
      std::uint64_t bits = input.bits;
      for (unsigned i = 0; i < count; ++i, which &= which - 1, bits <<= 1) {
        std::int16_t& value = out[Places<kGroup>::kAt[std::countr_zero(which) + 1]];
        const int step = (value >> 15) | 1;
        value = static_cast<std::int16_t>(value + ((step * static_cast<int>(bits >> 63)) << shift));
      }
    } else if (count < kAtOnce) {
      which = 0;
    } else {
      for (unsigned i = 0; i < count; ++i) which &= which - 1;
    }
    take(input, count);
  }
}

// Decodes the symbols of one block, which are for coefficients that are still zero, and the correction bits between the
// symbols. Returns the number of ended blocks like first_of_block(). `left`: receives the positions in the band whose
// correction bits have not been read.
template <int kGroup, bool kWanted>
FEEDLINE_INLINE int refine_block(const BandRun& run, std::uint64_t mask, std::int16_t* out, BitBuffer& input,
                                 std::uint64_t& left, std::uint64_t& added) {
  while (left != 0) {
    fill(input);
    BandSymbol symbol;
    if (!take_symbol(*run.table, run.table->entries[index_of<HuffmanTable::kIndexBits>(input)], input, symbol))
      return -1;
    if (symbol.advance == kEndOfBlock) return symbol.value;
    if (symbol.value < -1 || symbol.value > 1) return -1;
    std::uint64_t zeros = left & ~mask;
    for (unsigned i = 1; i < symbol.advance; ++i) zeros &= zeros - 1;
    if (zeros == 0) return -1;
    const std::uint64_t location = zeros & -zeros;
    correct<kGroup, kWanted>(left & mask & (location - 1), run.shift, out, input);
    if (symbol.value != 0) {
      added |= location;
      if constexpr (kWanted)
        out[Places<kGroup>::kAt[std::countr_zero(location) + 1]] = static_cast<std::int16_t>(symbol.value << run.shift);
    }
    left &= ~(location | (location - 1));
  }
  return 0;
}

template <int kGroup, bool kWanted>
FEEDLINE_INLINE void refine_band(BandRun& run) {
  BitBuffer input = run.input;
  int next = run.next, ended = run.blocks_ended;
  const std::uint64_t band = ~std::uint64_t{0} << run.first & ~std::uint64_t{0} >> (kBlockSize - 1 - run.last);
  for (; next < run.end && input.next <= input.limit; ++next) {
    const std::uint64_t mask = run.masks[next];
    std::int16_t* const out = kWanted ? block_at<kGroup>(run.coefficients, next - run.first_column) : nullptr;
    std::uint64_t left = band, added = 0;
    if (ended == 0) ended = refine_block<kGroup, kWanted>(run, mask, out, input, left, added);
    if (ended < 0) [[unlikely]] {
      run.failed = true;
      break;
    }
    if (ended > 0) {
      correct<kGroup, kWanted>(left & mask, run.shift, out, input);
      --ended;
    }
    run.masks[next] = mask | added;
  }
  run.input = input;
  run.next = next;
  run.blocks_ended = ended;
}

template <int kGroup>
FEEDLINE_INLINE void first_of_dc(DcRun& run) {
  BitBuffer input = run.input;
  for (; run.next < run.end && input.next <= input.limit; ++run.next)
    for (int i = 0; i < run.blocks; ++i) {
      const DcRun::Block& block = run.block[static_cast<std::size_t>(i)];
      std::int32_t& dc = run.dc[static_cast<std::size_t>(block.component)];
      if (!baseline::decode_dc(*block.table, input, dc)) {
        run.failed = true;
        return;
      }
      if (run.is_wanted)
        *block_at<kGroup>(block.coefficients, (run.next - run.first_column) * block.across + block.column) =
            static_cast<std::int16_t>(static_cast<std::uint32_t>(dc) << run.shift);
    }
  run.input = input;
}

template <int kGroup>
FEEDLINE_INLINE void refine_dc(DcRun& run) {
  BitBuffer input = run.input;
  for (; run.next < run.end && input.next <= input.limit; ++run.next) {
    fill(input);
    for (int i = 0; i < run.blocks; ++i) {
      const DcRun::Block& block = run.block[static_cast<std::size_t>(i)];
      const auto bit = static_cast<int>(input.bits >> 63);
      take(input, 1);
      if (!run.is_wanted) continue;
      std::int16_t& value =
          *block_at<kGroup>(block.coefficients, (run.next - run.first_column) * block.across + block.column);
      value = static_cast<std::int16_t>(value | bit << run.shift);
    }
  }
  run.input = input;
}

}  // namespace feedline::decode::progressive
