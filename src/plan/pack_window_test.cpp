// SPDX-License-Identifier: Apache-2.0
#include "plan/pack_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace feedline::plan {
namespace {

PackedWindow packed(const PackOptions& options, const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> documents(lengths.size());
  std::iota(documents.begin(), documents.end(), std::uint64_t{100});
  PackedWindow window;
  WindowPacker(options).pack(documents, lengths, {}, window);
  return window;
}

// The lengths of the pieces of each pack.
std::vector<std::vector<std::uint32_t>> lengths_in(const PackedWindow& window) {
  std::vector<std::vector<std::uint32_t>> packs;
  for (std::uint64_t i = 0; i < window.packs(); ++i) {
    packs.emplace_back();
    for (const PackPiece& piece : window.pack(i)) packs.back().push_back(piece.length);
  }
  return packs;
}

// Best-fit decreasing by its definition: searches all packs for each piece.
std::vector<std::uint64_t> free_by_definition(std::vector<std::uint64_t> lengths, std::uint64_t row) {
  std::ranges::sort(lengths, std::greater());
  std::vector<std::uint64_t> free;
  for (const std::uint64_t length : lengths) {
    auto best = free.end();
    for (auto pack = free.begin(); pack != free.end(); ++pack)
      if (*pack >= length && (best == free.end() || *pack < *best)) best = pack;
    if (best == free.end()) {
      free.push_back(row - length);
    } else {
      *best -= length;
    }
  }
  std::ranges::sort(free);
  return free;
}

TEST(WindowPackerTest, PutsEachPieceWhereItFitsBest) {
  const PackedWindow window = packed({.length = 10}, {3, 7, 4, 6, 2, 8, 5});
  EXPECT_EQ(lengths_in(window), (std::vector<std::vector<std::uint32_t>>{{2, 8}, {3, 7}, {4, 6}, {5}}));
  EXPECT_EQ(window.pack(0)[0].document, 104u);  // in the order of the documents, not of the lengths
}

TEST(WindowPackerTest, PacksLikeTheDefinition) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t row = 1 + random() % (round % 3 == 0 ? 9000 : 200);
    std::vector<std::uint64_t> lengths(random() % 300);
    for (std::uint64_t& length : lengths) length = 1 + random() % row;
    const PackedWindow window = packed({.length = row}, lengths);
    std::vector<std::uint64_t> free;
    for (const auto& pack : lengths_in(window))
      free.push_back(row - std::accumulate(pack.begin(), pack.end(), std::uint64_t{0}));
    std::ranges::sort(free);
    EXPECT_EQ(free, free_by_definition(lengths, row)) << "row " << row;
  }
}

// Every token of every document, with any options, is in at most one row, and the counts have their number.
TEST(WindowPackerTest, ContainsEveryTokenOnce) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 300; ++round) {
    PackOptions options{.length = 2 + random() % 50};
    options.method = round % 2 == 0 ? PackMethod::kBestFit : PackMethod::kConcat;
    if (options.method == PackMethod::kBestFit) options.overlong = static_cast<LongDocuments>(random() % 3);
    std::vector<std::uint64_t> lengths(random() % 60);
    for (std::uint64_t& length : lengths) length = random() % 120;
    const PackedWindow window = packed(options, lengths);

    std::map<std::uint64_t, std::vector<PackPiece>> pieces;
    for (std::uint64_t i = 0; i < window.packs(); ++i) {
      std::uint64_t used = 0;
      for (const PackPiece& piece : window.pack(i)) {
        used += piece.length;
        pieces[piece.document - 100].push_back(piece);
      }
      EXPECT_LE(used, options.length);
      EXPECT_GT(used, 0u);
    }
    PackCounts expected{.documents = lengths.size(), .packs = window.packs()};
    for (std::uint64_t i = 0; i < lengths.size(); ++i) {
      const bool is_long = lengths[i] > options.length;
      const bool is_dropped = is_long && options.overlong == LongDocuments::kDrop;
      const bool is_cut = is_long && options.overlong == LongDocuments::kTruncate;
      const std::uint64_t kept = is_dropped ? 0 : is_cut ? options.length : lengths[i];
      std::ranges::sort(pieces[i], {}, &PackPiece::begin);
      std::uint64_t at = 0;
      for (const PackPiece& piece : pieces[i]) {
        EXPECT_EQ(piece.begin, at);
        at += piece.length;
        EXPECT_EQ(piece.continues, at < kept);
      }
      EXPECT_EQ(at, kept);
      expected.empty += lengths[i] == 0;
      expected.dropped += is_dropped;
      expected.truncated += is_cut;
      expected.split += pieces[i].size() > 1;
      expected.pieces += pieces[i].size();
      expected.tokens += kept;
      expected.lost_tokens += lengths[i] - kept;
    }
    const PackCounts& counts = window.counts;
    EXPECT_EQ(counts.documents, expected.documents);
    EXPECT_EQ(counts.empty, expected.empty);
    EXPECT_EQ(counts.dropped, expected.dropped);
    EXPECT_EQ(counts.truncated, expected.truncated);
    EXPECT_EQ(counts.split, expected.split);
    EXPECT_EQ(counts.pieces, expected.pieces);
    EXPECT_EQ(counts.tokens, expected.tokens);
    EXPECT_EQ(counts.lost_tokens, expected.lost_tokens);
    EXPECT_EQ(counts.packs, expected.packs);
  }
}

// With padded documents, packs are those of documents with the padded lengths, and pieces have their own lengths.
TEST(WindowPackerTest, PadsDocumentsToAMultiple) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t multiple = 1 + random() % 16, row = multiple * (1 + random() % 30);
    std::vector<std::uint64_t> lengths(random() % 60), padded;
    for (std::uint64_t& length : lengths) length = 1 + random() % (2 * row);
    for (const std::uint64_t length : lengths) padded.push_back((length + multiple - 1) / multiple * multiple);
    for (const PackMethod method : {PackMethod::kBestFit, PackMethod::kConcat}) {
      const PackedWindow window = packed({.length = row, .method = method, .document_multiple = multiple}, lengths);
      const PackedWindow other = packed({.length = row, .method = method}, padded);
      EXPECT_EQ(window.ends, other.ends);
      EXPECT_EQ(window.counts.tokens, std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
      for (std::size_t i = 0; i < window.pieces.size(); ++i) {
        const PackPiece &piece = window.pieces[i], &with_padding = other.pieces[i];
        EXPECT_EQ(piece.document, with_padding.document);
        EXPECT_EQ(piece.begin, with_padding.begin);
        EXPECT_EQ(piece.continues, with_padding.continues);
        EXPECT_EQ(piece.length,
                  std::min<std::uint64_t>(with_padding.length, lengths[piece.document - 100] - piece.begin));
      }
    }
  }
}

TEST(WindowPackerTest, FillsAllRowsButTheLastOneByConcatenation) {
  PackOptions options{.length = 10, .method = PackMethod::kConcat};
  EXPECT_EQ(lengths_in(packed(options, {4, 0, 13, 6})), (std::vector<std::vector<std::uint32_t>>{{4, 6}, {7, 3}, {3}}));
}

TEST(WindowPackerTest, CanBeReused) {
  WindowPacker packer({.length = 10});
  const std::vector<std::uint64_t> first{5, 3}, second{9, 6, 4};
  EXPECT_EQ(packer.count(first).packs, 1u);
  EXPECT_EQ(packer.count(second).packs, 2u);
  EXPECT_EQ(packer.count(first).packs, 1u);
}

}  // namespace
}  // namespace feedline::plan
