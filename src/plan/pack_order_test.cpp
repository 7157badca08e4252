// SPDX-License-Identifier: Apache-2.0
#include "plan/pack_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/deal_packs.h"

namespace feedline::plan {
namespace {

std::uint64_t length_of(std::uint64_t document) { return 1 + document * 7919 % 90; }

PackOrder order_of(std::uint64_t epoch, bool shuffle = true, std::uint64_t window = 100) {
  OrderConfig config;
  config.size = 1000;
  config.shuffle = shuffle;
  config.seed = 5;
  PackOptions options{.length = 100};
  options.window = window;
  return PackOrder(config, epoch, options,
                   [](std::span<const std::uint64_t> documents, std::span<std::uint64_t> lengths) {
                     std::ranges::transform(documents, lengths.begin(), &length_of);
                   });
}

std::vector<std::uint64_t> documents_in(const PackOrder& order) {
  std::vector<std::uint64_t> documents;
  for (std::uint64_t w = 0; w < order.windows(); ++w)
    for (const PackPiece& piece : order.window(w)->pieces) documents.push_back(piece.document);
  return documents;
}

TEST(PackOrderTest, HasEveryDocumentOncePerEpoch) {
  for (const std::uint64_t window : {1u, 64u, 100u, 1000u, 5000u}) {
    auto documents = documents_in(order_of(0, true, window));
    std::ranges::sort(documents);
    ASSERT_EQ(documents.size(), 1000u);
    for (std::uint64_t i = 0; i < documents.size(); ++i) EXPECT_EQ(documents[i], i);
  }
}

TEST(PackOrderTest, PacksAWindowOfTheEpochsOrder) {
  const auto epoch = make_order({.size = 1000, .shuffle = true, .seed = 5, .shard_ends = {}, .selection = {}}, 3);
  std::set<std::uint64_t> expected, found;
  for (std::uint64_t i = 200; i < 300; ++i) expected.insert(epoch->at(i).sample);
  for (const PackPiece& piece : order_of(3).window(2)->pieces) found.insert(piece.document);
  EXPECT_EQ(found, expected);
}

TEST(PackOrderTest, DependsOnSeedAndEpochOnly) {
  EXPECT_EQ(documents_in(order_of(4)), documents_in(order_of(4)));
  EXPECT_NE(documents_in(order_of(4)), documents_in(order_of(5)));
}

// Best fit begins with the longest documents; packs must not.
TEST(PackOrderTest, PermutesThePacksOfAWindow) {
  const auto first_lengths = [](const PackOrder& order) {
    std::vector<std::uint64_t> longest;
    const auto window = order.window(0);
    for (std::uint64_t i = 0; i < window->packs(); ++i)
      longest.push_back(std::ranges::max(window->pack(i), {}, &PackPiece::length).length);
    return longest;
  };
  const auto in_order = first_lengths(order_of(0, false, 1000)), permuted = first_lengths(order_of(0, true, 1000));
  EXPECT_TRUE(std::ranges::is_sorted(in_order, std::greater()));
  EXPECT_FALSE(std::ranges::is_sorted(permuted, std::greater()));
}

TEST(PackOrderTest, CountsWhatTheWindowsHold) {
  const PackOrder order = order_of(2, true, 300);
  PackCounts sum;
  for (std::uint64_t w = 0; w < order.windows(); ++w) sum += order.window(w)->counts;
  const PackCounts counts = order.count(order.windows());
  EXPECT_EQ(order.windows(), 4u);
  EXPECT_EQ(counts.packs, sum.packs);
  EXPECT_EQ(counts.tokens, sum.tokens);
  EXPECT_EQ(counts.documents, 1000u);
  EXPECT_EQ(order.count(1).documents, 300u);
}

TEST(DealPacksTest, GivesTheMostExpensivePackToTheLeastLoadedRank) {
  const std::vector<double> costs{1, 9, 2, 8, 3, 7};
  const std::vector<std::uint64_t> rows{3, 3};
  // 9 to rank 0, 8 and 7 to rank 1, 3 and 2 to rank 0, which is then full
  EXPECT_EQ(deal_packs(costs, rows), (std::vector<std::uint64_t>{1, 0, 0, 1, 0, 1}));
}

TEST(DealPacksTest, GivesEachRankItsNumberOfRows) {
  const std::vector<double> costs{5, 1, 1, 1, 1};
  const std::vector<std::uint64_t> rows{2, 2, 1, 0};
  const auto ranks = deal_packs(costs, rows);
  for (std::uint64_t rank = 0; rank < rows.size(); ++rank)
    EXPECT_EQ(static_cast<std::uint64_t>(std::ranges::count(ranks, rank)), rows[rank]);
}

}  // namespace
}  // namespace feedline::plan
