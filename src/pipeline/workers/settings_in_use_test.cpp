// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/settings_in_use.h"

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

std::size_t wanted(const SettingsInUse& settings, std::size_t threads) {
  std::size_t count = 0;
  while (count < threads && settings.is_wanted(count)) ++count;
  for (std::size_t other = count; other < threads; ++other) EXPECT_FALSE(settings.is_wanted(other)) << "not the first";
  return count;
}

TEST(SettingsInUse, GivenNumbersStayAsTheyAre) {
  SettingsInUse settings(plan_of(3, 5), AdaptationMode::kRandom);
  EXPECT_EQ(settings.slots(), 5u);
  EXPECT_EQ(wanted(settings, 10), 3u);
  settings.add_worker(0);
  settings.begin_epoch();
  EXPECT_EQ(settings.delivered(1, 0), Adaptation::Next::kNothing);
  EXPECT_FALSE(settings.waits(1, 1'000'000'000'000));
  EXPECT_FALSE(settings.begin_epoch(true));
  EXPECT_EQ(wanted(settings, 10), 3u);
  EXPECT_EQ(settings.changes(), 0u);
  EXPECT_FALSE(settings.decided());
}

TEST(SettingsInUse, ThreadsWakeForOneSlotAndForHalfOfThemWhereRowsAreShort) {
  PipelinePlan plan = plan_of(1, 8);
  EXPECT_EQ(SettingsInUse(plan, AdaptationMode::kOff).slots_to_wake(), 7u);
  plan.short_rows = true;
  EXPECT_EQ(SettingsInUse(plan, AdaptationMode::kOff).slots_to_wake(), 4u);
}

TEST(SettingsInUse, WhatAdaptationDecidesIsInUseAtOnce) {
  PipelinePlan plan = plan_of(6, 4);
  plan.adapts = true;
  SettingsInUse settings(plan, AdaptationMode::kRandom);
  EXPECT_EQ(wanted(settings, 6), 6u);
  std::set<std::size_t> seen;
  for (std::uint64_t batch = 1; batch <= 200; ++batch) {
    EXPECT_EQ(settings.delivered(batch, 0), Adaptation::Next::kChanged);
    EXPECT_EQ(settings.changes(), batch);
    const auto decided = settings.decided();
    ASSERT_TRUE(decided);
    EXPECT_EQ(wanted(settings, 6), static_cast<std::size_t>(decided->settings.threads));
    EXPECT_EQ(settings.slots(), static_cast<std::uint64_t>(decided->settings.depth));
    seen.insert(wanted(settings, 6));
  }
  EXPECT_EQ(seen, (std::set<std::size_t>{1, 2, 3, 4, 5, 6}));
}

TEST(SettingsInUse, LeavesACpuOnce) {
  PipelinePlan plan = plan_of(1000, 4);
  plan.adapts = true;
  plan.threads_beside_gpu = 7;
  SettingsInUse settings(plan, AdaptationMode::kRandom);
  EXPECT_FALSE(settings.begin_epoch(false));
  EXPECT_EQ(wanted(settings, 1000), 1000u);
  EXPECT_TRUE(settings.begin_epoch(true));
  EXPECT_EQ(wanted(settings, 1000), 7u);
  EXPECT_FALSE(settings.begin_epoch(true)) << "nothing is left to change";
  EXPECT_FALSE(settings.begin_epoch(false));
  EXPECT_EQ(wanted(settings, 1000), 7u) << "for good";
}

}  // namespace
}  // namespace feedline::pipeline
