// SPDX-License-Identifier: Apache-2.0
#pragma once

// Huffman codes in a layout for table look-up. baseline_decoder.cpp explains the entries.

#include <array>
#include <cstdint>

namespace feedline::decode::baseline {

// A table as stored in a file: the number of codes of each length 1 ... 16, and their symbols, shortest first.
struct HuffmanSpec {
  std::array<std::uint8_t, 17> counts{};
  std::array<std::uint8_t, 256> symbols{};

  friend bool operator==(const HuffmanSpec&, const HuffmanSpec&) = default;
};

// kBand: AC coefficients of a progressive scan, in which a code may end a run of blocks. Its value is the run's length.
enum class HuffmanUse : std::uint8_t { kDc, kAc, kBand };

// An entry of the look-up table, from the lowest bit: 6 bits total length of code and value, 2 unused, 8 advance of the
// coefficient's index, 16 the constant to add to those bits to get the value (modulo 2^16).
using HuffmanEntry = std::uint32_t;

// Added to the advance of an entry that needs more work than storing a value. Both raise the index above 63.
inline constexpr unsigned kEndOfBlock = 128;
inline constexpr unsigned kLongCode = 192;  // the indexed bits do not contain the whole code and sign: use
                                            // HuffmanTable::code_in()

struct HuffmanTable {
  static constexpr int kIndexBits = 11;  // larger tables no longer stay in the fastest cache
  static constexpr int kLongest = 16;

  std::array<HuffmanEntry, 1 << kIndexBits> entries;
  // For each length: the first 16-bit string after its codes, and the offset from a code to its symbol's position.
  std::array<std::uint32_t, kLongest + 2> limits;
  std::array<std::int32_t, kLongest + 2> positions;
  std::array<std::uint8_t, 256> symbols;

  // Returns length and symbol of the code at the start of `bits` (16 bits); length 0 if there is none. Requires: `bits`
  // does not start with a code shorter than `shortest`.
  struct Code {
    int length = 0;
    std::uint8_t symbol = 0;
  };
  Code code_in(std::uint32_t bits, int shortest = 1) const {
    for (int length = shortest; length <= kLongest; ++length)
      if (bits < limits[length])
        return {length, symbols[static_cast<std::uint8_t>(static_cast<std::int32_t>(bits >> (kLongest - length)) +
                                                          positions[length])]};
    return {};
  }
};

// Returns false, leaving `table` unspecified, if libjpeg would reject the specification or it has no codes.
[[nodiscard]] bool build_table(const HuffmanSpec& spec, HuffmanUse use, HuffmanTable& table);

// For blocks whose pixels are not needed: covers all whole symbols within kIndexBits. An entry, from the lowest bit: 8
// bits number of bits to drop, 8 the advance of the index, with kEndOfBlock or kLongCode as above.
struct SkipTable {
  static constexpr int kIndexBits = 12;
  std::array<std::uint16_t, 1 << kIndexBits> entries;
};

// Requires: `spec` was accepted for HuffmanUse::kAc.
void build_skip_table(const HuffmanSpec& spec, SkipTable& table);

}  // namespace feedline::decode::baseline
