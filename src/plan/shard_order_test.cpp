// SPDX-License-Identifier: Apache-2.0
#include "plan/shard_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace feedline::plan {
namespace {

std::shared_ptr<const std::vector<std::uint64_t>> ends_of(const std::vector<std::uint64_t>& sizes) {
  auto ends = std::make_shared<std::vector<std::uint64_t>>(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), ends->begin());
  return ends;
}

std::vector<std::uint64_t> samples_of(const Order& order) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < order.size(); ++i) samples.push_back(order.at(i).sample);
  return samples;
}

TEST(ShardOrder, GivesEverySampleOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::uint64_t> sizes(1 + random() % 20);
    for (std::uint64_t& size : sizes) size = random() % 4 == 0 ? 0 : random() % 30;  // shards may be empty
    sizes[random() % sizes.size()] += 1;
    const auto ends = ends_of(sizes);
    auto samples = samples_of(ShardOrder(ends, 1 + random() % 24, random()));
    std::ranges::sort(samples);
    std::vector<std::uint64_t> all(ends->back());
    std::iota(all.begin(), all.end(), 0u);
    ASSERT_EQ(samples, all);
  }
}

// Between two samples of a shard, there are only samples from shards in the same group.
TEST(ShardOrder, ReadsFromAWindowOfShardsAtATime) {
  constexpr std::uint64_t kShards = 23, kEach = 50, kWindow = 4;
  const ShardOrder order(ends_of(std::vector<std::uint64_t>(kShards, kEach)), kWindow, 7);
  const auto samples = samples_of(order);
  std::set<std::uint64_t> seen;
  for (std::uint64_t group = 0; group * kWindow < kShards; ++group) {
    std::set<std::uint64_t> shards;
    const std::uint64_t end = std::min((group + 1) * kWindow * kEach, order.size());
    for (std::uint64_t i = group * kWindow * kEach; i < end; ++i) shards.insert(samples[i] / kEach);
    EXPECT_EQ(shards.size(), std::min(kWindow, kShards - group * kWindow));
    for (const std::uint64_t shard : shards) EXPECT_TRUE(seen.insert(shard).second) << "shard " << shard << " again";
  }
}

// Samples are distributed uniformly within a group: chi-square of (position in the group, shard of the group) over many
// keys.
TEST(ShardOrder, MixesTheShardsOfAWindowEvenly) {
  constexpr std::uint64_t kWindow = 3, kEach = 4, kKeys = 20000;
  const auto ends = ends_of({kEach, kEach, kEach});
  std::vector<std::vector<double>> count(kWindow * kEach, std::vector<double>(kWindow * kEach));
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    const ShardOrder order(ends, kWindow, key);
    for (std::uint64_t i = 0; i < order.size(); ++i) ++count[i][order.at(i).sample];
  }
  double chi_square = 0;
  const double expected = kKeys / double{kWindow * kEach};
  for (const auto& row : count)
    for (const double n : row) chi_square += (n - expected) * (n - expected) / expected;
  EXPECT_LT(chi_square, 188);  // 11 x 11 degrees of freedom: the 99.99 % quantile is 187
  EXPECT_GT(chi_square, 67);   // the 0.001 % quantile is 67
}

TEST(ShardOrder, OneShardOrNoWindowIsTheWholePermutation) {
  OrderConfig config;
  config.size = 100;
  config.shuffle = true;
  config.seed = 5;
  const auto whole = samples_of(*make_order(config, 2));
  config.shard_window = 4;
  EXPECT_EQ(samples_of(*make_order(config, 2)), whole);
  config.shard_ends = ends_of({100});
  EXPECT_EQ(samples_of(*make_order(config, 2)), whole);
  config.shard_ends = ends_of({40, 60});
  EXPECT_NE(samples_of(*make_order(config, 2)), whole);
}

// Finds the positions of each shard's samples by scanning all positions of an epoch.
std::vector<ShardUse> looked_up(const Order& order, const std::vector<std::uint64_t>& ends) {
  std::vector<ShardUse> uses(ends.size());
  for (std::uint64_t position = 0; position < order.size(); ++position) {
    const auto shard = static_cast<std::size_t>(
        std::distance(ends.begin(), std::ranges::upper_bound(ends, order.at(position).sample)));
    if (uses[shard].end == 0) uses[shard].first = position;
    uses[shard].end = position + 1;
  }
  return uses;
}

// In every kind of order, all samples of a shard are in the range that is reported for it. If an order reads shard by
// shard, the range is exact; if it reads in windows, the range is the window.
TEST(ShardUses, HoldEverySampleOfTheShard) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::uint64_t> sizes(2 + random() % 12);
    for (std::uint64_t& size : sizes) size = random() % 5 == 0 ? 0 : random() % 20;
    sizes[random() % sizes.size()] += 1;
    const auto ends = ends_of(sizes);
    OrderConfig config;
    config.size = ends->back();
    config.shuffle = random() % 2 == 0;
    config.seed = random();
    config.shard_window = config.shuffle ? random() % 4 : 0;
    config.shard_ends = ends;
    config.repeat = 1 + random() % 3;
    const auto order = make_order(config, random() % 5);
    const auto uses = order->shard_uses(*ends), found = looked_up(*order, *ends);
    const bool is_exact = !config.shuffle || config.shard_window == 1;
    for (std::size_t shard = 0; shard < uses.size(); ++shard) {
      const bool is_read = found[shard].end > 0;
      EXPECT_GE(uses[shard].end, found[shard].end);
      if (is_read) {
        EXPECT_LE(uses[shard].first, found[shard].first);
      }
      if (is_exact && is_read) {
        EXPECT_EQ(uses[shard], found[shard]) << shard;
      }
      if (is_exact && !is_read) {
        EXPECT_EQ(uses[shard].first, uses[shard].end) << "not read at all";
      }
      if (config.shuffle && config.shard_window == 0) {
        EXPECT_EQ(uses[shard], (ShardUse{0, order->size()}));
      }
    }
    if (config.shard_window > 1 && config.repeat == 1 && sizes.size() > 2 * config.shard_window) {
      std::uint64_t longest = 0;
      for (const ShardUse& use : uses) longest = std::max(longest, use.end - use.first);
      std::vector<std::uint64_t> sorted = sizes;
      std::ranges::sort(sorted, std::greater<>());
      EXPECT_LE(longest,
                std::accumulate(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(config.shard_window),
                                std::uint64_t{0}));
    }
  }
}

// The order permutes blocks, of which each stored shard has several.
TEST(ShardUses, OfShardsWithSeveralBlocksHoldAllTheirBlocks) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::uint64_t> blocks, shards;  // sizes
    for (std::uint64_t left = 2 + random() % 6; left > 0; --left) {
      std::uint64_t& shard = shards.emplace_back();
      for (std::uint64_t count = random() % 5; count > 0; --count)
        shard += blocks.emplace_back(random() % 3 == 0 ? 0 : random() % 20);
    }
    blocks.push_back(1);
    shards.push_back(1);
    const ShardOrder order(ends_of(blocks), 1 + random() % 4, random());
    const auto ends = ends_of(shards);
    const auto uses = order.shard_uses(*ends), found = looked_up(order, *ends),
               of_blocks = order.shard_uses(*ends_of(blocks));
    for (std::size_t shard = 0; shard < uses.size(); ++shard) {
      EXPECT_LE(uses[shard].first, found[shard].first);
      EXPECT_GE(uses[shard].end, found[shard].end);
      const auto is_end = [&](const ShardUse& use) { return use.end == uses[shard].end; };
      EXPECT_EQ(uses[shard].first == uses[shard].end, shards[shard] == 0) << "unused if and only if it is empty";
      EXPECT_TRUE(shards[shard] == 0 || std::ranges::any_of(of_blocks, is_end)) << "no more than the last window";
    }
  }
}

TEST(ShardOrder, KeepsItsValuesOnEveryMachine) {
  const ShardOrder order(ends_of({5, 9, 3, 8, 1}), 2, 42);
  const auto samples = samples_of(order);
  // golden values: changing them breaks every saved state
  EXPECT_EQ((std::vector<std::uint64_t>(samples.begin(), samples.begin() + 8)),
            (std::vector<std::uint64_t>{1, 21, 17, 0, 20, 4, 18, 2}));
}

}  // namespace
}  // namespace feedline::plan
