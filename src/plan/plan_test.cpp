// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace feedline::plan {
namespace {

std::vector<std::uint64_t> samples_of(const PlanConfig& config) {
  const Plan plan(config);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < plan.positions(); ++i) samples.push_back(plan.sample_at(i));
  return samples;
}

std::map<std::uint64_t, int> count_over_ranks(PlanConfig config) {
  std::map<std::uint64_t, int> count;
  for (config.rank = 0; config.rank < config.world_size; ++config.rank)
    for (const std::uint64_t sample : samples_of(config)) ++count[sample];
  return count;
}

TEST(Plan, IsTheIdentityWithoutShuffle) {
  EXPECT_EQ(samples_of({.size = 5, .batch_size = 2}), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(Plan, AnotherSeedOrEpochIsAnotherOrder) {
  const PlanConfig base{.size = 1000, .batch_size = 7, .seed = 1, .epoch = 0, .shuffle = true};
  PlanConfig seed = base, epoch = base;
  seed.seed = 2;
  epoch.epoch = 1;
  EXPECT_EQ(samples_of(base), samples_of(base));
  EXPECT_NE(samples_of(base), samples_of(seed));
  EXPECT_NE(samples_of(base), samples_of(epoch));
  EXPECT_NE(samples_of(seed), samples_of(epoch));
}

TEST(Plan, CountsBatches) {
  EXPECT_EQ(Plan({.size = 10, .batch_size = 4}).batches(), 3u);
  EXPECT_EQ(Plan({.size = 10, .batch_size = 4, .drop_last = true}).batches(), 2u);
  EXPECT_EQ(Plan({.size = 8, .batch_size = 4, .drop_last = true}).batches(), 2u);
  EXPECT_EQ(Plan({.size = 3, .batch_size = 4, .drop_last = true}).batches(), 0u);
}

// The global batch is the same set of samples whatever the number of ranks it is cut into.
TEST(Plan, GlobalBatchesDoNotDependOnTheWorldSize) {
  const auto global_batch = [](std::uint64_t ranks, std::uint64_t batch_size, std::uint64_t index) {
    std::vector<std::uint64_t> samples;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      const Plan plan(
          {.size = 103, .batch_size = batch_size, .seed = 5, .shuffle = true, .rank = rank, .world_size = ranks});
      for (std::uint64_t row = 0; row < batch_size; ++row) samples.push_back(plan.sample_at(index * batch_size + row));
    }
    std::ranges::sort(samples);
    return samples;
  };
  for (std::uint64_t index = 0; index < 8; ++index) {
    EXPECT_EQ(global_batch(1, 12, index), global_batch(4, 3, index));
    EXPECT_EQ(global_batch(1, 12, index), global_batch(3, 4, index));
  }
}

class PlanOverRanks : public testing::TestWithParam<std::tuple<int, int, int>> {
 protected:
  PlanConfig config(Uneven uneven) const {
    const auto [size, batch_size, ranks] = GetParam();
    PlanConfig config;
    config.size = static_cast<std::uint64_t>(size);
    config.batch_size = static_cast<std::uint64_t>(batch_size);
    config.world_size = static_cast<std::uint64_t>(ranks);
    config.seed = 9;
    config.shuffle = true;
    config.uneven = uneven;
    return config;
  }
  std::vector<std::uint64_t> positions_per_rank(PlanConfig config) const {
    std::vector<std::uint64_t> positions;
    for (config.rank = 0; config.rank < config.world_size; ++config.rank) positions.push_back(Plan(config).positions());
    return positions;
  }
};

TEST_P(PlanOverRanks, ExactSeesEverySampleOnce) {
  const auto count = count_over_ranks(config(Uneven::kExact));
  EXPECT_EQ(count.size(), config(Uneven::kExact).size);
  for (const auto& [sample, times] : count) ASSERT_EQ(times, 1) << sample;
}

TEST_P(PlanOverRanks, PadGivesEveryRankTheSameAndRepeatsTheFewestSamples) {
  const PlanConfig config = this->config(Uneven::kPad);
  const auto positions = positions_per_rank(config);
  EXPECT_EQ(std::ranges::count(positions, positions[0]), std::ssize(positions));
  const auto count = count_over_ranks(config);
  EXPECT_EQ(count.size(), config.size);
  const std::uint64_t ranks = config.world_size;
  EXPECT_EQ(positions[0] * ranks, (config.size + ranks - 1) / ranks * ranks);
}

TEST_P(PlanOverRanks, DropGivesEveryRankTheSameAndRepeatsNothing) {
  const PlanConfig config = this->config(Uneven::kDrop);
  const auto positions = positions_per_rank(config);
  EXPECT_EQ(std::ranges::count(positions, positions[0]), std::ssize(positions));
  for (const auto& [sample, times] : count_over_ranks(config)) ASSERT_EQ(times, 1) << sample;
  EXPECT_EQ(positions[0], config.size / config.world_size);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PlanOverRanks,
                         testing::Combine(testing::Values(1, 7, 64, 100, 1001), testing::Values(1, 8, 30),
                                          testing::Values(1, 2, 3, 8)));

}  // namespace
}  // namespace feedline::plan
