// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/shard_timetable.h"

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
  plan.batch_size = 4;
  return plan;
}

std::size_t shard_of(const std::vector<std::uint64_t>& ends, std::uint64_t sample) {
  return static_cast<std::size_t>(std::distance(ends.begin(), std::ranges::upper_bound(ends, sample)));
}

// Compares with the samples of two consecutive epochs: never later than the shard's next sample, and exactly then if an
// order reads shard by shard; wherever an epoch was resumed.
TEST(ShardTimetable, SaysWhenEachShardIsNeededNext) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::uint64_t> ends;
    for (std::uint64_t end = 0, i = 0; i < 6; ++i) ends.push_back(end += 8 + random() % 16);
    const bool shuffle = random() % 3 != 0;
    const std::uint64_t window = shuffle ? random() % 3 : 0;
    PipelinePlan plan = plan_of(ends, shuffle, window);
    ShardTimetable timetable(plan, ends, 0);
    EXPECT_EQ(timetable.walks(), !shuffle || window > 0);
    const std::uint64_t epoch = random() % 4;
    EpochStart start{.epoch = epoch, .position = random() % ends.back(), .delivered = {}, .left_out = 0};
    const plan::Plan resumed(plan::make_order(plan.order, epoch), cut_of(plan, start));
    std::vector<std::size_t> shards;
    for (const std::uint64_t of : {epoch, epoch + 1})
      for (std::uint64_t p = 0; p < ends.back(); ++p)
        shards.push_back(shard_of(ends, plan::make_order(plan.order, of)->at(p).sample));
    for (std::uint64_t batch = 0; batch < resumed.batches(); ++batch) {
      timetable.go_to(epoch, resumed, batch);
      const std::uint64_t place = resumed.begin_of(batch);
      ASSERT_EQ(place, start.position + batch * plan.batch_size);
      for (std::size_t shard = 0; shard < ends.size(); ++shard) {
        const auto next = std::find(shards.begin() + static_cast<std::ptrdiff_t>(place), shards.end(), shard);
        ASSERT_NE(next, shards.end());
        const auto until = static_cast<std::uint64_t>(std::distance(shards.begin(), next)) - place;
        EXPECT_LE(timetable.until(shard), until);
        if (!shuffle || window == 1) {
          EXPECT_EQ(timetable.until(shard), until) << shard << " at " << place;
        }
      }
    }
  }
}

TEST(ShardTimetable, WantsWhatIsReadAndThenWhatComesNextOverTheBorderOfEpochs) {
  const std::vector<std::uint64_t> ends{16, 32, 48, 64};
  PipelinePlan plan = plan_of(ends, false, 0);
  ShardTimetable timetable(plan, ends, 8);
  const plan::Plan whole = whole_epoch(plan);
  using Shards = std::vector<std::size_t>;
  timetable.go_to(0, whole, 0);
  EXPECT_EQ(timetable.wanted(2, true), (Shards{0, 1, 2}));
  EXPECT_EQ(timetable.next_change(), 16u);
  timetable.go_to(0, whole, 5);  // position 20
  EXPECT_EQ(timetable.wanted(1, true), (Shards{1, 2}));
  EXPECT_FALSE(timetable.is_past(0)) << "lagging ranks may still read from it";
  EXPECT_EQ(timetable.until(0), 0u);
  EXPECT_EQ(timetable.next_change(), 24u);
  timetable.go_to(0, whole, 6);
  EXPECT_TRUE(timetable.is_past(0));
  EXPECT_EQ(timetable.until(0), 40u);
  EXPECT_FALSE(timetable.is_past(1));
  timetable.go_to(0, whole, 15);
  EXPECT_EQ(timetable.wanted(2, true), (Shards{3, 0, 1}));
  EXPECT_EQ(timetable.wanted(2, false), (Shards{3})) << "no other epoch follows";
  EXPECT_EQ(timetable.until(3), 0u);
  EXPECT_EQ(timetable.until(0), 4u);
  timetable.go_to(1, whole, 0);
  EXPECT_EQ(timetable.until(0), 0u);
  EXPECT_EQ(timetable.until(3), 0u) << "lagging ranks are in the previous epoch";
  EXPECT_EQ(timetable.next_change(), 8u);
  timetable.go_to(1, whole, 2);
  EXPECT_EQ(timetable.until(3), 40u);
  EXPECT_TRUE(timetable.is_past(3)) << "and it is read from its first sample again";
}

TEST(ShardTimetable, BehindThePlaceThatAnEpochIsResumedAtNobodyReads) {
  const std::vector<std::uint64_t> ends{16, 32, 48, 64};
  PipelinePlan plan = plan_of(ends, false, 0);
  ShardTimetable timetable(plan, ends, 100);
  const EpochStart start{.epoch = 5, .position = 20, .delivered = {}, .left_out = 0};
  timetable.go_to(5, plan::Plan(plan::make_order(plan.order, 5), cut_of(plan, start)), 4);  // position 36
  EXPECT_TRUE(timetable.is_past(0));
  EXPECT_FALSE(timetable.is_past(1));
  EXPECT_EQ(timetable.until(0), 28u);
  EXPECT_EQ(timetable.until(1), 0u);
}

// A rank fetches only the shards that have its samples; together, the ranks fetch all shards.
TEST(ShardTimetable, ARankWantsTheShardsOfItsOwnSamples) {
  const std::vector<std::uint64_t> ends{4, 8, 12, 16, 20, 24, 28, 32, 33, 36};
  std::set<std::size_t> all;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    for (const std::uint64_t begin : {0u, 3u}) {
      PipelinePlan plan = plan_of(ends, false, 0);
      plan.world_size = 4;
      plan.uneven = Uneven::kExact;  // padding of the last batch comes from shards that were read
      plan.rank = rank;
      ShardTimetable timetable(plan, ends, 0);
      const EpochStart start{.epoch = 0, .position = begin, .delivered = {}, .left_out = 0};
      const plan::Plan mine(plan::make_order(plan.order, 0), cut_of(plan, start));
      timetable.go_to(0, mine, 0);
      const auto wanted = timetable.wanted(100, false);
      std::set<std::size_t> needed;
      for (std::uint64_t batch = 0; batch < mine.batches(); ++batch)
        for (std::uint64_t row = 0; row < mine.rows(batch); ++row)
          needed.insert(shard_of(ends, mine.at(batch * plan.batch_size + row).sample));
      for (const std::size_t shard : needed) EXPECT_NE(std::ranges::find(wanted, shard), wanted.end()) << shard;
      EXPECT_LT(wanted.size(), ends.size());
      if (begin == 0) all.insert(wanted.begin(), wanted.end());
    }
  }
  EXPECT_EQ(all.size(), ends.size());
}

}  // namespace
}  // namespace feedline::pipeline
