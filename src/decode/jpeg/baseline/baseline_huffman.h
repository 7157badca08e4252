// SPDX-License-Identifier: Apache-2.0
#pragma once

// Huffman codes laid out for decoding by look-up. What the entries hold and why: the essay in baseline_decoder.cpp.

#include <array>
#include <cstdint>

namespace feedline::decode::baseline {

// A table as a file gives it: how many codes there are of each length 1 ... 16, and their symbols, shortest first.
struct HuffmanSpec {
  std::array<std::uint8_t, 17> counts{};
  std::array<std::uint8_t, 256> symbols{};

  friend bool operator==(const HuffmanSpec&, const HuffmanSpec&) = default;
};

// kBand: AC coefficients of a progressive scan, where a code may end a whole run of blocks. Its value is their number.
enum class HuffmanUse : std::uint8_t { kDc, kAc, kBand };

// An entry of the look-up table, from the lowest bit: 6 bits how many bits code and value take together, 2 unused,
// 8 by how much the coefficient's index advances, 16 what to add to those bits to get the value (modulo 2^16).
using HuffmanEntry = std::uint32_t;

// Added to the advance of an entry after which a block needs more than storing a value. Both lift the index over 63.
inline constexpr unsigned kEndOfBlock = 128;
inline constexpr unsigned kLongCode = 192;  // the bits looked at do not tell code and sign: HuffmanTable::code_in()

struct HuffmanTable {
  static constexpr int kIndexBits = 11;  // larger tables no longer stay in the fastest cache
  static constexpr int kLongest = 16;

  std::array<HuffmanEntry, 1 << kIndexBits> entries;
  // Of each length: the first 16-bit string after its codes, and what to add to a code to get its symbol's position.
  std::array<std::uint32_t, kLongest + 2> limits;
  std::array<std::int32_t, kLongest + 2> positions;
  std::array<std::uint8_t, 256> symbols;

  // Length and symbol of the code that `bits` (16 of them) starts with; length 0 where no code does.
  // Requires: no code shorter than `shortest` does.
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

// False, and `table` unspecified, where libjpeg would refuse the specification or it has no codes at all.
[[nodiscard]] bool build_table(const HuffmanSpec& spec, HuffmanUse use, HuffmanTable& table);

// For blocks whose pixels nobody wants: as many whole symbols as are known from kIndexBits. An entry, from the lowest
// bit: 8 bits how many bits to drop, 8 the advance of the index, with kEndOfBlock or kLongCode as above.
struct SkipTable {
  static constexpr int kIndexBits = 12;
  std::array<std::uint16_t, 1 << kIndexBits> entries;
};

// Requires: `spec` was accepted for HuffmanUse::kAc.
void build_skip_table(const HuffmanSpec& spec, SkipTable& table);

}  // namespace feedline::decode::baseline
