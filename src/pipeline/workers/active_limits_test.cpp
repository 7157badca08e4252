// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/active_limits.h"

#include <gtest/gtest.h>

#include <set>

namespace feedline::pipeline {
namespace {

PipelinePlan plan_of(int threads, std::uint64_t slots) {
  PipelinePlan plan;
  plan.threads = threads;
  plan.slots = plan.most_slots = slots;
  return plan;
}

std::size_t wanted(const ActiveLimits& limits, std::size_t threads) {
  std::size_t count = 0;
  while (count < threads && limits.is_wanted(count)) ++count;
  for (std::size_t other = count; other < threads; ++other) EXPECT_FALSE(limits.is_wanted(other)) << "not the first";
  return count;
}

TEST(ActiveLimits, GivenNumbersStayAsTheyAre) {
  ActiveLimits limits(plan_of(3, 5), AdaptationMode::kRandom);
  EXPECT_EQ(limits.slots(), 5u);
  EXPECT_EQ(wanted(limits, 10), 3u);
  limits.add_worker(0);
  limits.begin_epoch();
  EXPECT_EQ(limits.delivered(1, 0), Adaptation::Next::kNothing);
  EXPECT_FALSE(limits.waits(1, 1'000'000'000'000));
  EXPECT_FALSE(limits.begin_epoch(true));
  EXPECT_EQ(wanted(limits, 10), 3u);
  EXPECT_EQ(limits.changes(), 0u);
  EXPECT_FALSE(limits.decided());
}

TEST(ActiveLimits, ThreadsWakeForOneSlotAndForHalfOfThemWhereRowsAreShort) {
  PipelinePlan plan = plan_of(1, 8);
  EXPECT_EQ(ActiveLimits(plan, AdaptationMode::kOff).slots_to_wake(), 7u);
  plan.short_rows = true;
  EXPECT_EQ(ActiveLimits(plan, AdaptationMode::kOff).slots_to_wake(), 4u);
}

TEST(ActiveLimits, WhatAdaptationDecidesIsInUseAtOnce) {
  PipelinePlan plan = plan_of(6, 4);
  plan.adapts = true;
  ActiveLimits limits(plan, AdaptationMode::kRandom);
  EXPECT_EQ(wanted(limits, 6), 6u);
  std::set<std::size_t> seen;
  for (std::uint64_t batch = 1; batch <= 200; ++batch) {
    EXPECT_EQ(limits.delivered(batch, 0), Adaptation::Next::kChanged);
    EXPECT_EQ(limits.changes(), batch);
    const auto decided = limits.decided();
    ASSERT_TRUE(decided);
    EXPECT_EQ(wanted(limits, 6), static_cast<std::size_t>(decided->settings.threads));
    EXPECT_EQ(limits.slots(), static_cast<std::uint64_t>(decided->settings.depth));
    seen.insert(wanted(limits, 6));
  }
  EXPECT_EQ(seen, (std::set<std::size_t>{1, 2, 3, 4, 5, 6}));
}

TEST(ActiveLimits, LeavesACpuOnce) {
  PipelinePlan plan = plan_of(1000, 4);
  plan.adapts = true;
  plan.threads_with_gpu = 7;
  ActiveLimits limits(plan, AdaptationMode::kRandom);
  EXPECT_FALSE(limits.begin_epoch(false));
  EXPECT_EQ(wanted(limits, 1000), 1000u);
  EXPECT_TRUE(limits.begin_epoch(true));
  EXPECT_EQ(wanted(limits, 1000), 7u);
  EXPECT_FALSE(limits.begin_epoch(true)) << "nothing is left to change";
  EXPECT_FALSE(limits.begin_epoch(false));
  EXPECT_EQ(wanted(limits, 1000), 7u) << "for good";
}

}  // namespace
}  // namespace feedline::pipeline
