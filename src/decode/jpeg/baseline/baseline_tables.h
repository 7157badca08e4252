// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches the look-up tables of the last images. Most files share their tables, which are then built only once.

#include <array>
#include <cstdint>
#include <vector>

#include "decode/jpeg/baseline/baseline_huffman.h"

namespace feedline::decode::baseline {

// Not thread-safe. Each thread should reuse one.
class BaselineTables {
 public:
  BaselineTables();

  // Tables returned earlier may be replaced from now on. Two images decoded together count as one.
  void begin_image() { ++image_; }

  // Returns the table of `spec`, valid until the next begin_image(); null if `spec` is invalid. At most kMaxUsed
  // different tables per image and use.
  const HuffmanTable* find(const HuffmanSpec& spec, HuffmanUse use);

  // Returns the skip table for an AC table that find() returned. Null if building it takes longer than skipping
  // `blocks` blocks without it and no previous image had the same table.
  const SkipTable* find_skip(const HuffmanTable* table, std::int64_t blocks);

 private:
  static constexpr std::size_t kMaxUsed = 2 * 3;

  struct Slot {
    HuffmanSpec spec;
    HuffmanTable table;
    SkipTable skip;
    std::uint64_t last_image = 0;
    int images = 0;  // number of images that used it; 0: empty
    bool has_skip = false;
  };
  using Slots = std::array<Slot, kMaxUsed + 1>;

  std::uint64_t image_ = 0;
  std::vector<Slots> of_use_;  // indexed by HuffmanUse; in a vector because of its size
};

}  // namespace feedline::decode::baseline
