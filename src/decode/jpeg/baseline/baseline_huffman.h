// SPDX-License-Identifier: Apache-2.0
#pragma once

// Huffman codes as lookup tables; baseline_decoder.cpp explains the entries.

#include <array>
#include <cstdint>

namespace feedline::decode::baseline {

// A table as stored in a file: the number of codes of each length 1 ... 16, and their symbols, shortest first.
struct HuffmanSpec {
  std::array<std::uint8_t, 17> counts{};
  std::array<std::uint8_t, 256> symbols{};

  friend bool operator==(const HuffmanSpec&, const HuffmanSpec&) = default;
};

// kBand: AC coefficients of a progressive scan, whose codes may end a run of blocks. The value of such a code is the
// length of the run.
enum class HuffmanUse : std::uint8_t { kDc, kAc, kBand };

// An entry of the lookup table, from the lowest bit: 6 bits for the total length of code and value, 2 unused bits, 8
// bits for the advance of the coefficient's index, and 16 bits for the constant that is added to the code and value
// bits to compute the value (modulo 2^16).
using HuffmanEntry = std::uint32_t;

// Added to the advance of an entry for which storing a value is not enough. Both constants raise the index above 63.
inline constexpr unsigned kEndOfBlock = 128;
inline constexpr unsigned kLongCode = 192;  // the indexed bits do not contain the whole code and sign: use
                                            // HuffmanTable::code_in()

struct HuffmanTable {
  static constexpr int kIndexBits = 11;  // larger tables no longer stay in the fastest cache
  static constexpr int kLongest = 16;

  std::array<HuffmanEntry, 1 << kIndexBits> entries;
  // For each length: the first 16-bit string after the codes of this length, and the offset from a code to the position
  // of its symbol.
  std::array<std::uint32_t, kLongest + 2> limits;
  std::array<std::int32_t, kLongest + 2> positions;
  std::array<std::uint8_t, 256> symbols;

  // Returns the length and the symbol of the code at the start of `bits` (16 bits), or length 0 if there is no code.
  // Requires: `bits` does not begin with a code that is shorter than `shortest`.
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

// Returns false and leaves `table` unspecified if `spec` has no codes or libjpeg would reject it.
[[nodiscard]] bool build_table(const HuffmanSpec& spec, HuffmanUse use, HuffmanTable& table);

// A table for blocks whose pixels are not needed: an entry covers all complete symbols in kIndexBits bits. An entry,
// from the lowest bit: 8 bits for the number of bits to drop, and 8 bits for the advance of the index, with kEndOfBlock
// or kLongCode as above.
struct SkipTable {
  static constexpr int kIndexBits = 12;
  std::array<std::uint16_t, 1 << kIndexBits> entries;
};

// Requires: build_table() accepted `spec` for HuffmanUse::kAc.
void build_skip_table(const HuffmanSpec& spec, SkipTable& table);

}  // namespace feedline::decode::baseline
