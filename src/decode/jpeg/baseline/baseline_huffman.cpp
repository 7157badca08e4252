// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_huffman.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace feedline::decode::baseline {
namespace {

constexpr int kMaxDcSize = 15;  // libjpeg's limit
constexpr int kZeroRun = 15;    // with size 0: sixteen zeros, not the end of the block

// A decoded symbol: the number of value bits after its code, and the advance of the index.
struct Meaning {
  int size;
  unsigned advance;
};

Meaning meaning_of(std::uint8_t symbol, HuffmanUse use) {
  if (use == HuffmanUse::kDc) return {symbol, 1};
  const int run = symbol >> 4, size = symbol & 15;
  // like libjpeg, treats size 0 with any other run as an end of block
  return {size, size == 0 && run != kZeroRun ? kEndOfBlock : static_cast<unsigned>(run) + 1};
}

HuffmanEntry entry_of(int total, unsigned advance, int to_add) {
  return static_cast<HuffmanEntry>(total) | advance << 8 | static_cast<HuffmanEntry>(to_add) << 16;
}

bool acceptable(const HuffmanSpec& spec, HuffmanUse use) {
  const int count = std::accumulate(spec.counts.begin() + 1, spec.counts.end(), 0);
  if (count == 0 || count > 256) return false;
  std::uint32_t code = 0;
  for (int length = 1; length <= HuffmanTable::kLongest; ++length) {
    code = 2 * code + spec.counts[length];
    if (code >= 1u << length) return false;  // a code of all ones is not allowed
  }
  return use != HuffmanUse::kDc ||
         std::ranges::all_of(std::span(spec.symbols).first(count), [](int size) { return size <= kMaxDcSize; });
}

}  // namespace

bool build_table(const HuffmanSpec& spec, HuffmanUse use, HuffmanTable& table) {
  if (!acceptable(spec, use)) return false;
  constexpr int kBits = HuffmanTable::kIndexBits;
  HuffmanEntry* to = table.entries.data();
  HuffmanEntry* const end = to + table.entries.size();
  table.symbols = spec.symbols;
  int code = 0, symbol = 0;
  // codes in order cover the indices in order
  for (int length = 1; length <= HuffmanTable::kLongest; ++length, code <<= 1) {
    table.positions[length] = symbol - code;
    for (int i = 0; i < spec.counts[length]; ++i, ++code, ++symbol) {
      if (length > kBits) continue;
      const auto [size, advance] = meaning_of(spec.symbols[symbol], use);
      const int locations = 1 << (kBits - length);
      if (use == HuffmanUse::kBand && advance == kEndOfBlock) {
        const int more = spec.symbols[symbol] >> 4;  // number of bits after the code; if zero, only this block ends
        to = std::fill_n(to, locations, entry_of(length + more, advance, (1 << more) - (code << more)));
      } else if (size == 0) {
        to = std::fill_n(to, locations, entry_of(length, advance, -code));
      } else if (length < kBits) {  // the sign is the bit after the code
        const int total = length + size;
        to = std::fill_n(to, locations / 2, entry_of(total, advance, -(code << size) - ((1 << size) - 1)));
        to = std::fill_n(to, locations / 2, entry_of(total, advance, -(code << size)));
      } else {
        to = std::fill_n(to, locations, entry_of(0, kLongCode, 0));
      }
    }
    table.limits[length] = static_cast<std::uint32_t>(code) << (HuffmanTable::kLongest - length);
  }
  std::fill(to, end, entry_of(0, kLongCode, 0));
  return true;
}

namespace {

constexpr unsigned kMaxAdvance = 63;  // a larger sum of advances would be mistaken for a flag

constexpr std::uint16_t skip_entry(int total, unsigned advance) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(total) | advance << 8);
}

// Builds the entries for all bit strings of one length from the entries for shorter strings: a symbol's entry is
// combined with the entry for the remaining bits. `largest` is the largest advance of an entry that does not end a
// block.
struct SkipLevel {
  std::uint16_t* entries;
  unsigned largest;
};

// Fills the entries for one code: every value of its `size` bits is followed by the same `rest` strings.
void fill_code(std::uint16_t*& to, int locations, int size, const SkipLevel& rest, std::uint16_t own) {
  if ((own >> 8) + rest.largest > kMaxAdvance) {
    to = std::fill_n(to, locations, own);
    return;
  }
  const std::uint16_t* const from = to;
  to = std::transform(rest.entries, rest.entries + (locations >> size), to,
                      [own](std::uint16_t entry) { return static_cast<std::uint16_t>(entry + own); });
  for (int doubled = 0; doubled < size; ++doubled) to = std::copy(from, static_cast<const std::uint16_t*>(to), to);
}

unsigned fill_level(const HuffmanSpec& spec, int bits, const SkipLevel* shorter, std::uint16_t* to) {
  std::uint16_t* const end = to + (1 << bits);
  unsigned largest = 0;
  int symbol = 0;
  for (int length = 1; length <= bits; ++length)
    for (int i = 0; i < spec.counts[length]; ++i, ++symbol) {
      const auto [size, advance] = meaning_of(spec.symbols[symbol], HuffmanUse::kAc);
      const int locations = 1 << (bits - length);
      const std::uint16_t own = skip_entry(length + size, advance);
      const int left = bits - length - size;
      if (advance < kEndOfBlock) largest = std::max(largest, advance + (left > 0 ? shorter[left].largest : 0));
      if (advance >= kEndOfBlock || left <= 0)
        to = std::fill_n(to, locations, own);
      else
        fill_code(to, locations, size, shorter[left], own);
    }
  std::fill(to, end, std::uint16_t{0});
  return std::min(largest, kMaxAdvance);
}

}  // namespace

void build_skip_table(const HuffmanSpec& spec, SkipTable& table) {
  constexpr int kBits = SkipTable::kIndexBits;
  std::array<std::uint16_t, 1 << kBits> shorter;  // entries for 1 bit start at index 2, for 2 bits at index 4, ...
  std::array<SkipLevel, kBits> levels{};
  for (int bits = 1; bits < kBits; ++bits) {
    levels[bits].entries = shorter.data() + (std::size_t{1} << bits);
    levels[bits].largest = fill_level(spec, bits, levels.data(), levels[bits].entries);
  }
  fill_level(spec, kBits, levels.data(), table.entries.data());
  std::ranges::replace(table.entries, std::uint16_t{0}, skip_entry(0, kLongCode));
}

}  // namespace feedline::decode::baseline
