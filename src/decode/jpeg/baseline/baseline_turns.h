// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes bits into coefficients, two symbols at a time, for one image or for two images alternately.
// baseline_decoder.cpp explains the reasons. Included like baseline_entropy.h.

#include "decode/jpeg/baseline/baseline_entropy.h"

namespace feedline::decode::baseline {

// An EntropyRun with its state in registers. The state that every symbol needs is in local variables of the kernel; the
// rest stays in the run.
template <int kGroup, Blocks kBlocks>
struct Lane {
  EntropyRun& run;
  BitBuffer input;
  unsigned index;
  std::int16_t* out = nullptr;
  const HuffmanEntry* table = nullptr;
  const std::uint16_t* skip = nullptr;

  FEEDLINE_INLINE explicit Lane(EntropyRun& of) : run(of), input(of.state->input), index(of.index) {}
  FEEDLINE_INLINE void save() {
    run.state->input = input;
    run.index = index;
  }

  // Returns false if the run has ended or needs more input.
  FEEDLINE_INLINE bool resume() {
    if (index == 0) return begin_block();
    point();
    return true;
  }

  // Moves to the next block.
  FEEDLINE_INLINE void point() {
    const BlockPlan& block = run.plan->block[static_cast<std::size_t>(run.block)];
    if constexpr (kBlocks == Blocks::kSkipped)
      skip = block.skip->entries.data();
    else
      table = block.ac->entries.data();
    if constexpr (kBlocks == Blocks::kWanted) out = find_sample<kGroup>(block, run.next, run.coefficients);
  }

  FEEDLINE_INLINE bool begin_block() {
    index = 0;
    if (run.block == 0 && (run.next >= run.end || input.next > input.limit)) return false;
    const BlockPlan& block = run.plan->block[static_cast<std::size_t>(run.block)];
    std::int32_t& dc = run.state->dc[static_cast<std::size_t>(block.component)];
    if (!decode_dc(*block.dc, input, dc)) return fail();
    point();
    if constexpr (kBlocks == Blocks::kWanted) *out = static_cast<std::int16_t>(dc);
    index = 1;
    return true;
  }

  FEEDLINE_INLINE bool end_block() {
    if (++run.block == run.plan->blocks) {
      run.block = 0;
      ++run.next;
    }
    return begin_block();
  }

  FEEDLINE_INLINE bool fail() {
    run.failed = true;
    return false;
  }

  FEEDLINE_INLINE void store(unsigned k, std::int16_t value) const {
    if constexpr (kBlocks == Blocks::kWanted) out[Places<kGroup>::kAt[k]] = value;
  }

  // Decodes two symbols, and possibly starts the next block. Returns false if the run has stopped.
  FEEDLINE_INLINE bool step() {
    if constexpr (kBlocks == Blocks::kSkipped)
      return step_over();
    else
      return step_through();
  }

  FEEDLINE_INLINE bool step_through() {
    HuffmanEntry entry = table[index_of<HuffmanTable::kIndexBits>(input)];
    fill(input);  // parallel to the look-up, not after it: 25 bits are still valid
    unsigned next = index + advance_of(entry);
    if (next < kBlockSize) [[likely]] {
      store(next, value_of(input, entry));
      index = next;
      take(input, entry);
      entry = table[index_of<HuffmanTable::kIndexBits>(input)];  // at most 25 of 56 bits are consumed
      next = index + advance_of(entry);
      if (next < kBlockSize) [[likely]] {
        store(next, value_of(input, entry));
        index = next;
        take(input, entry);
        return true;
      }
    }
    return end_symbols(entry);
  }

  FEEDLINE_INLINE bool end_symbols(HuffmanEntry entry) {
    const HuffmanTable& codes = *run.plan->block[static_cast<std::size_t>(run.block)].ac;
    BitBuffer at = input;
    unsigned reached = index;
    std::int16_t* const to = out;
    const auto put = [to](unsigned k, std::int16_t value) FEEDLINE_INLINE_LAMBDA {
      if constexpr (kBlocks == Blocks::kWanted) to[Places<kGroup>::kAt[k]] = value;
    };
    const AcEnd end = end_run(codes, entry, at, reached, put);
    input = at;
    index = reached;
    if (end == AcEnd::kBlockDone) return end_block();
    return end == AcEnd::kGoOn || fail();
  }

  FEEDLINE_INLINE bool step_over() {
    unsigned entry = skip[index_of<SkipTable::kIndexBits>(input)];
    fill(input);
    unsigned next = index + (entry >> 8);
    if (next < kBlockSize) [[likely]] {
      index = next;
      take(input, entry);
      entry = skip[index_of<SkipTable::kIndexBits>(input)];  // at most 27 of 56 bits are consumed
      next = index + (entry >> 8);
      if (next < kBlockSize) [[likely]] {
        index = next;
        take(input, entry);
        return true;
      }
    }
    const unsigned advance = entry >> 8;
    const bool is_end = advance >= kEndOfBlock && advance < kLongCode && next < kEndOfBlock + kBlockSize;
    if (is_end || next == kBlockSize) {
      take(input, entry);
      return end_block();
    }
    // a long code, or symbols that already belong to the next block: one symbol at a time
    const HuffmanTable& codes = *run.plan->block[static_cast<std::size_t>(run.block)].ac;
    const HuffmanEntry single = codes.entries[index_of<HuffmanTable::kIndexBits>(input)];
    if (index + advance_of(single) < kBlockSize) {
      index += advance_of(single);
      take(input, single);
      return true;
    }
    return end_symbols(single);
  }
};

template <int kGroup, Blocks kBlocks>
FEEDLINE_INLINE void run_alone(EntropyRun& run) {
  Lane<kGroup, kBlocks> lane(run);
  if (lane.resume())
    while (lane.step()) {
    }
  lane.save();
}

template <int kGroup, Blocks kFirst, Blocks kSecond>
FEEDLINE_INLINE int run_both(EntropyRun& first, EntropyRun& second) {
  Lane<kGroup, kFirst> a(first);
  Lane<kGroup, kSecond> b(second);
  int stopped = 0;
  if (a.resume()) {
    stopped = 1;
    if (b.resume())
      for (;;) {
        if (!a.step()) {
          stopped = 0;
          break;
        }
        if (!b.step()) break;
      }
  }
  a.save();
  b.save();
  return stopped;
}

}  // namespace feedline::decode::baseline
