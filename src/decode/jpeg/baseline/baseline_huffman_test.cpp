// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_huffman.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace feedline::decode::baseline {
namespace {

// Returns random valid tables with between a few and 256 codes, both short and long.
HuffmanSpec random_spec(std::mt19937& random, HuffmanUse use) {
  HuffmanSpec spec;
  std::iota(spec.symbols.begin(), spec.symbols.end(), std::uint8_t{0});
  if (use == HuffmanUse::kAc) std::ranges::shuffle(spec.symbols, random);
  int symbols = 1 + static_cast<int>(random() % (use == HuffmanUse::kDc ? 16 : 256));
  unsigned room = 2;
  for (int length = 1; length <= 16 && symbols > 0; ++length, room *= 2) {
    const unsigned most = std::min<unsigned>({room - 1, static_cast<unsigned>(symbols), 255});
    const unsigned count = length == 16 || random() % 3 == 0 ? most : static_cast<unsigned>(random() % (most / 2 + 1));
    spec.counts[length] = static_cast<std::uint8_t>(count);
    symbols -= static_cast<int>(count);
    room -= count;
  }
  if (std::ranges::count(spec.counts, 0) == 17) spec.counts[2] = 1;
  return spec;
}

// Finds the code that the 16 bits start with by trying all codes. The length is 0 if there is none.
HuffmanTable::Code code_in(const HuffmanSpec& spec, unsigned bits) {
  unsigned code = 0;
  std::size_t symbol = 0;
  for (int length = 1; length <= 16; ++length, code *= 2)
    for (int i = 0; i < spec.counts[length]; ++i, ++code, ++symbol)
      if (bits >> (16 - length) == code) return {length, spec.symbols[symbol]};
  return {};
}

struct Value {
  int bits, value;
};

// Decodes the code and the value at the start of the 32 bits according to the standard (ITU-T T.81, F.2.2.1).
Value value_in(std::uint32_t bits, const HuffmanTable::Code& code, int size) {
  if (size == 0) return {code.length, 0};
  const int raw = static_cast<int>(bits << code.length >> (32 - size));
  return {code.length + size, raw < 1 << (size - 1) ? raw - (1 << size) + 1 : raw};
}

TEST(BaselineHuffman, EveryEntryIsWhatTheCodesSay) {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const HuffmanUse use = round % 2 == 0 ? HuffmanUse::kAc : HuffmanUse::kDc;
    const HuffmanSpec spec = random_spec(random, use);
    HuffmanTable table;
    ASSERT_TRUE(build_table(spec, use, table));
    int reported = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      const HuffmanTable::Code code = code_in(spec, bits >> 16);
      const HuffmanTable::Code found = table.code_in(bits >> 16, std::max(1, code.length - round % 4));
      ASSERT_EQ(found.length, code.length);
      ASSERT_EQ(found.symbol, code.symbol);
      const HuffmanEntry entry = table.entries[bits >> (32 - HuffmanTable::kIndexBits)];
      const unsigned advance = entry >> 8 & 255;
      if (advance == kLongCode) {
        // no code, or one that leaves no bits for the sign
        const int size = use == HuffmanUse::kDc ? code.symbol : code.symbol & 15;
        ASSERT_TRUE(code.length == 0 || code.length + (size > 0) > HuffmanTable::kIndexBits);
        continue;
      }
      ++reported;
      const int run = use == HuffmanUse::kDc ? 0 : code.symbol >> 4;
      const int size = use == HuffmanUse::kDc ? code.symbol : code.symbol & 15;
      const bool ends = use == HuffmanUse::kAc && size == 0 && run != 15;
      const auto [total, value] = value_in(bits, code, size);
      ASSERT_EQ(entry & 255, static_cast<unsigned>(total));
      ASSERT_EQ(advance, ends ? kEndOfBlock : static_cast<unsigned>(run) + 1);
      const std::uint32_t code_and_value = bits >> (32 - total);
      ASSERT_EQ(static_cast<std::int16_t>(code_and_value + (entry >> 16)), value);
    }
    EXPECT_GT(reported, 0);
  }
}

TEST(BaselineHuffman, SkippingIsReadingSymbolBySymbol) {
  std::mt19937 random(6);
  SkipTable table;
  for (int round = 0; round < 40; ++round) {
    const HuffmanSpec spec = random_spec(random, HuffmanUse::kAc);
    build_skip_table(spec, table);
    std::size_t most_symbols = 0;
    for (std::size_t index = 0; index < table.entries.size(); ++index) {
      const std::uint32_t bits = static_cast<std::uint32_t>(index) << (32 - SkipTable::kIndexBits);
      const unsigned entry = table.entries[index], total = entry & 255, advance = entry >> 8;
      unsigned expected = 0, used = 0, symbols = 0;
      while (used < total) {
        const HuffmanTable::Code code = code_in(spec, bits << used >> 16);
        ASSERT_GT(code.length, 0);
        ASSERT_LE(used + static_cast<unsigned>(code.length), SkipTable::kIndexBits + 0u);
        const int run = code.symbol >> 4, size = code.symbol & 15;
        used += static_cast<unsigned>(code.length + size);
        ++symbols;
        expected += size == 0 && run != 15 ? kEndOfBlock : static_cast<unsigned>(run) + 1;
        ASSERT_TRUE(expected < kEndOfBlock || used == total) << "a symbol after the end of the block";
      }
      ASSERT_EQ(used, total);
      if (symbols == 0) {
        const HuffmanTable::Code code = code_in(spec, bits >> 16);
        ASSERT_EQ(advance, kLongCode);
        ASSERT_TRUE(code.length == 0 || code.length > SkipTable::kIndexBits);
      } else {
        ASSERT_EQ(advance, expected);
        ASSERT_LT(advance, kLongCode);
      }
      most_symbols = std::max<std::size_t>(most_symbols, symbols);
    }
    EXPECT_GE(most_symbols, 1u);
  }
}

TEST(BaselineHuffman, RefusesWhatLibjpegRefuses) {
  HuffmanTable table;
  HuffmanSpec spec;
  EXPECT_FALSE(build_table(spec, HuffmanUse::kAc, table)) << "no codes";
  spec.counts[1] = 2;
  EXPECT_FALSE(build_table(spec, HuffmanUse::kAc, table)) << "a code of all ones";
  spec.counts[1] = 1, spec.counts[2] = 1;
  EXPECT_TRUE(build_table(spec, HuffmanUse::kAc, table));
  spec.counts[3] = 3;
  EXPECT_FALSE(build_table(spec, HuffmanUse::kAc, table)) << "more codes than there is room for";
  spec = {};
  spec.counts[15] = 255, spec.counts[16] = 2;
  EXPECT_FALSE(build_table(spec, HuffmanUse::kAc, table)) << "more than 256 codes";
  spec = {};
  spec.counts[3] = 1, spec.symbols[0] = 15;
  EXPECT_TRUE(build_table(spec, HuffmanUse::kDc, table));
  spec.symbols[0] = 16;
  EXPECT_FALSE(build_table(spec, HuffmanUse::kDc, table)) << "a DC difference of 16 bits";
}

}  // namespace
}  // namespace feedline::decode::baseline
