// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "feedline/packing.h"

namespace feedline::plan {

// The documents of one window, divided into packs.
struct PackedWindow {
  std::vector<PackPiece> pieces;    // by pack, in the epoch's order within a pack
  std::vector<std::uint32_t> ends;  // cumulative number of pieces, per pack
  PackCounts counts;

  std::uint64_t packs() const { return ends.size(); }
  std::span<const PackPiece> pack(std::uint64_t i) const {
    const std::uint32_t begin = i > 0 ? ends[i - 1] : 0;
    return std::span(pieces).subspan(begin, ends[i] - begin);
  }
};

// Packs windows of documents. Reuses its memory, so it is not thread-safe.
//
// Best-fit decreasing: the pieces are sorted by length (counting sort), longest first, and each goes to the pack with
// the least free space that fits it. Packs are found by their free space: a bitmap of the free sizes that occur, with a
// second level of one bit per 64, and a list of packs for each size.
class WindowPacker {
 public:
  // Requires: options.length is below 2^31, and a multiple of options.document_multiple; both are positive.
  explicit WindowPacker(const PackOptions& options);

  // Packs these documents, which have these lengths. The packs are permuted by `key`; without one, they are in the
  // order in which best fit opens them. Requires: spans of the same length; kSplit for kConcat.
  void pack(std::span<const std::uint64_t> documents, std::span<const std::uint64_t> lengths,
            std::optional<std::uint64_t> key, PackedWindow& window);
  // Returns only the counts of that window.
  PackCounts count(std::span<const std::uint64_t> lengths);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Item {                  // a piece shorter than a row, or a whole row
    std::uint32_t document = 0;  // position in the window
    std::uint32_t length = 0;
    std::uint64_t begin = 0;
    bool continues = false;
    std::uint32_t padded = 0;  // the length in the row
  };
  PackCounts cut(std::span<const std::uint64_t> lengths);
  PackCounts cut_concatenated(std::span<const std::uint64_t> lengths);
  std::uint32_t padded(std::uint32_t length) const;
  void assign_best_fit();
  void permute(std::uint64_t key);
  std::uint32_t smallest_free_from(std::uint32_t size) const;
  void push_free(std::uint32_t size, std::uint32_t pack);
  std::uint32_t pop_free(std::uint32_t size);

  const PackOptions options_;
  const std::uint32_t row_;
  std::vector<Item> items_;
  std::vector<std::uint32_t> pack_of_;  // by item
  std::uint32_t packs_ = 0;
  std::vector<std::uint64_t> order_;                     // the packs, permuted
  std::vector<std::uint32_t> positions_;                 // by pack: its position in order_
  std::vector<std::uint32_t> sorted_, starts_;           // items by length, and where each length starts
  std::vector<std::uint32_t> first_free_;                // the first pack with this much free space
  std::vector<std::uint32_t> next_free_;                 // by pack: the next one with the same space
  std::vector<std::uint64_t> free_bits_, free_summary_;  // sizes that occur
};

}  // namespace feedline::plan
