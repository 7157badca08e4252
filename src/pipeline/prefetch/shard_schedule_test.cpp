// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/shard_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace feedline::pipeline {
namespace {

PipelinePlan plan_of(const std::vector<std::uint64_t>& ends, bool shuffle, std::uint64_t window) {
  PipelinePlan plan;
  plan.order.size = ends.back();
  plan.order.shuffle = shuffle;
  plan.order.seed = 7;
  plan.order.shard_window = window;
  plan.order.shard_ends = std::make_shared<const std::vector<std::uint64_t>>(ends);
  plan.ranks.batch_rows = 4;
  return plan;
}

std::size_t shard_of(const std::vector<std::uint64_t>& ends, std::uint64_t sample) {
  return static_cast<std::size_t>(std::distance(ends.begin(), std::ranges::upper_bound(ends, sample)));
}

// Compares the schedule with the samples of two consecutive epochs, from any resumed position: the schedule must never
// report a position later than the shard's next sample, and must be exact for orders that read shard by shard.
TEST(ShardSchedule, SaysWhenEachShardIsNeededNext) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::uint64_t> ends;
    for (std::uint64_t end = 0, i = 0; i < 6; ++i) ends.push_back(end += 8 + random() % 16);
    const bool shuffle = random() % 3 != 0;
    const std::uint64_t window = shuffle ? random() % 3 : 0;
    PipelinePlan plan = plan_of(ends, shuffle, window);
    ShardSchedule schedule(plan, ends, 0);
    EXPECT_EQ(schedule.walks(), !shuffle || window > 0);
    const std::uint64_t epoch = random() % 4;
    EpochStart start{.epoch = epoch, .position = random() % ends.back(), .delivered = {}, .left_out = 0};
    const plan::Plan resumed(plan::make_order(plan.order, epoch), cut_of(plan, start));
    std::vector<std::size_t> shards;
    for (const std::uint64_t of : {epoch, epoch + 1})
      for (std::uint64_t p = 0; p < ends.back(); ++p)
        shards.push_back(shard_of(ends, plan::make_order(plan.order, of)->at(p).sample));
    for (std::uint64_t batch = 0; batch < resumed.batches(); ++batch) {
      schedule.go_to(epoch, resumed, batch);
      const std::uint64_t position = resumed.begin_of(batch);
      ASSERT_EQ(position, start.position + batch * plan.ranks.batch_rows);
      for (std::size_t shard = 0; shard < ends.size(); ++shard) {
        const auto next = std::find(shards.begin() + static_cast<std::ptrdiff_t>(position), shards.end(), shard);
        ASSERT_NE(next, shards.end());
        const auto until = static_cast<std::uint64_t>(std::distance(shards.begin(), next)) - position;
        EXPECT_LE(schedule.until(shard), until);
        if (!shuffle || window == 1) {
          EXPECT_EQ(schedule.until(shard), until) << shard << " at " << position;
        }
      }
    }
  }
}

TEST(ShardSchedule, WantsWhatIsReadAndThenWhatComesNextOverTheBorderOfEpochs) {
  const std::vector<std::uint64_t> ends{16, 32, 48, 64};
  PipelinePlan plan = plan_of(ends, false, 0);
  ShardSchedule schedule(plan, ends, 8);
  const plan::Plan whole = whole_epoch(plan);
  using Shards = std::vector<std::size_t>;
  schedule.go_to(0, whole, 0);
  EXPECT_EQ(schedule.wanted(2, true), (Shards{0, 1, 2}));
  EXPECT_EQ(schedule.next_change(), 16u);
  schedule.go_to(0, whole, 5);  // position 20
  EXPECT_EQ(schedule.wanted(1, true), (Shards{1, 2}));
  EXPECT_FALSE(schedule.is_past(0)) << "lagging ranks may still read from it";
  EXPECT_EQ(schedule.until(0), 0u);
  EXPECT_EQ(schedule.next_change(), 24u);
  schedule.go_to(0, whole, 6);
  EXPECT_TRUE(schedule.is_past(0));
  EXPECT_EQ(schedule.until(0), 40u);
  EXPECT_FALSE(schedule.is_past(1));
  schedule.go_to(0, whole, 15);
  EXPECT_EQ(schedule.wanted(2, true), (Shards{3, 0, 1}));
  EXPECT_EQ(schedule.wanted(2, false), (Shards{3})) << "no other epoch follows";
  EXPECT_EQ(schedule.until(3), 0u);
  EXPECT_EQ(schedule.until(0), 4u);
  schedule.go_to(1, whole, 0);
  EXPECT_EQ(schedule.until(0), 0u);
  EXPECT_EQ(schedule.until(3), 0u) << "lagging ranks are in the previous epoch";
  EXPECT_EQ(schedule.next_change(), 8u);
  schedule.go_to(1, whole, 2);
  EXPECT_EQ(schedule.until(3), 40u);
  EXPECT_TRUE(schedule.is_past(3)) << "and it is read from its first sample again";
}

TEST(ShardSchedule, NobodyReadsAfterThePositionOfAResumedEpoch) {
  const std::vector<std::uint64_t> ends{16, 32, 48, 64};
  PipelinePlan plan = plan_of(ends, false, 0);
  ShardSchedule schedule(plan, ends, 100);
  const EpochStart start{.epoch = 5, .position = 20, .delivered = {}, .left_out = 0};
  schedule.go_to(5, plan::Plan(plan::make_order(plan.order, 5), cut_of(plan, start)), 4);  // position 36
  EXPECT_TRUE(schedule.is_past(0));
  EXPECT_FALSE(schedule.is_past(1));
  EXPECT_EQ(schedule.until(0), 28u);
  EXPECT_EQ(schedule.until(1), 0u);
}

// A rank fetches only shards that contain its own samples; together, the ranks fetch all shards.
TEST(ShardSchedule, ARankWantsTheShardsOfItsOwnSamples) {
  const std::vector<std::uint64_t> ends{4, 8, 12, 16, 20, 24, 28, 32, 33, 36};
  std::set<std::size_t> all;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    for (const std::uint64_t begin : {0u, 3u}) {
      PipelinePlan plan = plan_of(ends, false, 0);
      plan.ranks.world_size = 4;
      plan.ranks.uneven = Uneven::kExact;  // padding of the last batch comes from shards that were read
      plan.ranks.rank = rank;
      ShardSchedule schedule(plan, ends, 0);
      const EpochStart start{.epoch = 0, .position = begin, .delivered = {}, .left_out = 0};
      const plan::Plan mine(plan::make_order(plan.order, 0), cut_of(plan, start));
      schedule.go_to(0, mine, 0);
      const auto wanted = schedule.wanted(100, false);
      std::set<std::size_t> needed;
      for (std::uint64_t batch = 0; batch < mine.batches(); ++batch)
        for (std::uint64_t row = 0; row < mine.rows(batch); ++row)
          needed.insert(shard_of(ends, mine.at(batch * plan.ranks.batch_rows + row).sample));
      for (const std::size_t shard : needed) EXPECT_NE(std::ranges::find(wanted, shard), wanted.end()) << shard;
      EXPECT_LT(wanted.size(), ends.size());
      if (begin == 0) all.insert(wanted.begin(), wanted.end());
    }
  }
  EXPECT_EQ(all.size(), ends.size());
}

}  // namespace
}  // namespace feedline::pipeline
