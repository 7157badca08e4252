// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the look-up tables of the last images: files that share theirs, as most do, have them built once.

#include <array>
#include <cstdint>
#include <vector>

#include "decode/jpeg/baseline/baseline_huffman.h"

namespace feedline::decode::baseline {

// A thread keeps one. Not for several threads at once.
class BaselineTables {
 public:
  BaselineTables();

  // Tables handed out before may be replaced from now on. Two images that are decoded in turn count as one.
  void begin_image() { ++image_; }

  // The table of `spec`, valid until the next begin_image(); null where `spec` is none. At most kMaxUsed different
  // ones per image and use.
  const HuffmanTable* find(const HuffmanSpec& spec, HuffmanUse use);

  // The table to skip with, of an AC table that find() returned. Null where building it takes longer than skipping
  // `blocks` blocks without it and no image before had the same table.
  const SkipTable* find_skip(const HuffmanTable* table, std::int64_t blocks);

 private:
  static constexpr std::size_t kMaxUsed = 2 * 3;

  struct Slot {
    HuffmanSpec spec;
    HuffmanTable table;
    SkipTable skip;
    std::uint64_t last_image = 0;
    int images = 0;  // that used it; 0: empty
    bool has_skip = false;
  };
  using Slots = std::array<Slot, kMaxUsed + 1>;

  std::uint64_t image_ = 0;
  std::vector<Slots> of_use_;  // by HuffmanUse; in a vector because of its size
};

}  // namespace feedline::decode::baseline
