// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches the lookup tables of recent images. Most files define the same Huffman tables, for which the lookup tables are
// then built only once.

#include <array>
#include <cstdint>
#include <vector>

#include "decode/jpeg/baseline/baseline_huffman.h"

namespace feedline::decode::baseline {

// Not thread-safe. Each thread should reuse one object.
class BaselineTables {
 public:
  BaselineTables();

  // Tables that find() returned before this call may be replaced from now on. Two images that are decoded together
  // count as one image.
  void begin_image() { ++image_; }

  // Returns the table of `spec`, valid until the next call to begin_image(); nullptr if `spec` is invalid. Each image
  // may request at most kMaxUsed different tables per use.
  const HuffmanTable* find(const HuffmanSpec& spec, HuffmanUse use);

  // Returns the skip table for an AC table from find(). Returns nullptr if no previous image had the same table and
  // building it would take longer than skipping `blocks` blocks without it.
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
