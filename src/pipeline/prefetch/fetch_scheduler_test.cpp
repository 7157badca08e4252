// SPDX-License-Identifier: Apache-2.0
// The test acts as the fetching thread and as the reader threads.
#include "pipeline/prefetch/fetch_scheduler.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "pipeline/fake_format.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

using Kind = FetchScheduler::Step::Kind;

class FetchSchedulerTest : public testing::Test {
 protected:
  static PipelinePlan planned() {
    const auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(10)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    auto plan = plan_given(**recipe, {.batch_size = 4, .num_workers = 1});
    EXPECT_TRUE(plan);
    plan->read_ahead_bytes = std::uint64_t{1} << 30;
    return *plan;
  }
  static void begin(FetchScheduler& scheduler) {
    scheduler.begin(true);
    ASSERT_TRUE(scheduler.turn_far());
    EXPECT_FALSE(scheduler.turn_far()) << "another thread starts it";
    scheduler.started(true);
    EXPECT_TRUE(scheduler.is_far());
  }
  static void give(FetchScheduler& scheduler, const std::vector<std::uint64_t>& samples, std::uint64_t oldest = 0) {
    std::vector<GivenSample> given;
    for (const std::uint64_t sample : samples) given.push_back({sample, 0});
    scheduler.give(given, oldest);
  }
  // Starts all pending fetches and returns their entries.
  std::vector<FetchScheduler::Entry*> started(FetchScheduler& scheduler) {
    std::vector<FetchScheduler::Entry*> entries;
    while (true) {
      const auto step = scheduler.next(fresh_);
      if (step.kind == Kind::kMakeEntry) {
        fresh_.emplace_back().parts.resize(kParts);
        continue;
      }
      if (step.kind != Kind::kFetch) {
        EXPECT_EQ(step.kind, Kind::kWait);
        return entries;
      }
      step.entry->used = step.entry->under_way = kParts;
      for (FetchTable::Part& part : step.entry->parts) part.entry = step.entry;
      entries.push_back(step.entry);
    }
  }
  static void finish(FetchScheduler& scheduler, FetchScheduler::Entry& entry, std::size_t bytes,
                     bool was_near = false) {
    for (FetchTable::Part& part : entry.parts) finish(scheduler, part, bytes, was_near);
  }
  static void finish(FetchScheduler& scheduler, FetchTable::Part& part, std::size_t bytes, bool was_near) {
    part.bytes = std::span<const std::byte>(part.buffer.resize(bytes));
    part.was_near = was_near;
    storage::Fetch* const fetch = &part;
    scheduler.finished({&fetch, 1});
  }
  // Returns the size of each part, or an empty vector if the sample was not fetched.
  std::vector<std::size_t> take(FetchScheduler& scheduler, std::uint64_t batch, std::uint64_t row,
                                std::uint64_t sample) {
    std::vector<std::size_t> bytes;
    const auto used = scheduler.take({0, nullptr, batch, row, true}, sample, waiter_, parts_, part_read_);
    for (std::size_t i = 0; i < used.value_or(0); ++i) bytes.push_back(parts_[i].bytes->size());
    return bytes;
  }

  static constexpr std::size_t kParts = 2;
  using Bytes = std::vector<std::size_t>;

  const PipelinePlan plan_ = planned();
  telemetry::HeldBytes held_;
  FetchScheduler scheduler_{plan_, kParts, false, false, held_}, turning_{plan_, kParts, true, false, held_};
  FetchScheduler::Entries fresh_;
  const std::shared_ptr<FetchWaiter> waiter_ = std::make_shared<FetchWaiter>();
  FetchTable::Parts parts_{kParts};
  std::shared_ptr<PartRead> part_read_;
};

TEST_F(FetchSchedulerTest, WhatWasFetchedOfAnOrderThatIsNoMoreIsNobodys) {
  begin(scheduler_);
  give(scheduler_, {1, 2, 3});
  const auto before = started(scheduler_);
  ASSERT_EQ(before.size(), 3u);
  for (auto* entry : before) finish(scheduler_, *entry, 10);
  EXPECT_EQ(take(scheduler_, 0, 0, 1), (Bytes{10, 10}));
  scheduler_.begin(true);
  give(scheduler_, {2});
  const auto after = started(scheduler_);
  ASSERT_EQ(after.size(), 1u);
  finish(scheduler_, *after[0], 20);
  EXPECT_EQ(take(scheduler_, 0, 0, 2), (Bytes{20, 20})) << "that of the previous order";
  EXPECT_TRUE(take(scheduler_, 0, 1, 3).empty());
}

TEST_F(FetchSchedulerTest, ASampleIsThereOnceAllItsPartsAre) {
  begin(scheduler_);
  give(scheduler_, {5, 6});
  const auto entries = started(scheduler_);
  ASSERT_EQ(entries.size(), 2u);
  finish(scheduler_, entries[0]->parts[1], 30, false);
  EXPECT_FALSE(entries[0]->is_finished);
  finish(scheduler_, entries[0]->parts[0], 40, false);
  EXPECT_TRUE(entries[0]->is_finished);
  EXPECT_EQ(take(scheduler_, 0, 0, 5), (Bytes{40, 30}));
  entries[1]->used = entries[1]->under_way = 0;
  scheduler_.finished(*entries[1]);  // there was nothing to fetch
  EXPECT_TRUE(take(scheduler_, 0, 1, 6).empty());
}

TEST_F(FetchSchedulerTest, TurnsNearOnceAllIsInMemoryAndHoldsNothing) {
  for (FetchScheduler* scheduler : {&scheduler_, &turning_}) {
    begin(*scheduler);
    for (std::uint64_t i = 0; i < 300 && scheduler->is_far(); ++i) {
      give(*scheduler, {i % 10}, i);
      const auto entries = started(*scheduler);
      ASSERT_EQ(entries.size(), 1u);
      finish(*scheduler, *entries[0], 10, i != 7);
      take(*scheduler, i, 0, i % 10);
      if (i < 255) {
        EXPECT_TRUE(scheduler->is_far()) << i;
      }
    }
    EXPECT_EQ(scheduler->is_far(), scheduler == &scheduler_);
    EXPECT_EQ(scheduler->has_turned_near(), scheduler == &turning_);
  }
  EXPECT_EQ(turning_.held_bytes(), 0u);
  EXPECT_GT(scheduler_.held_bytes(), 0u) << "a spare one";
  EXPECT_FALSE(turning_.turn_far()) << "the thread is running";
  EXPECT_TRUE(turning_.is_far());
  EXPECT_FALSE(turning_.has_turned_near());
}

TEST_F(FetchSchedulerTest, EndsOnceAllThatIsUnderWayIsCancelled) {
  begin(scheduler_);
  give(scheduler_, {1, 2});
  const auto entries = started(scheduler_);
  scheduler_.stop();
  EXPECT_EQ(scheduler_.next(fresh_).kind, Kind::kCancel);
  std::vector<storage::Fetch*> parts;
  for (auto* entry : entries)
    for (FetchTable::Part& part : entry->parts) parts.push_back(&part);
  EXPECT_EQ(scheduler_.under_way(), parts);
  for (auto* entry : entries) finish(scheduler_, *entry, 10);
  EXPECT_EQ(scheduler_.next(fresh_).kind, Kind::kEnd);
  EXPECT_FALSE(scheduler_.turn_far());
}

TEST_F(FetchSchedulerTest, WhereTheThreadBreaksOffNobodyWaitsForIt) {
  begin(scheduler_);
  give(scheduler_, {1, 2});
  ASSERT_EQ(started(scheduler_).size(), 2u);
  {
    const std::jthread comes([this] { EXPECT_TRUE(take(scheduler_, 0, 0, 1).empty()); });
    while (waiter_.use_count() < 2) std::this_thread::yield();
    scheduler_.break_off();
  }
  EXPECT_FALSE(scheduler_.is_far());
  EXPECT_FALSE(scheduler_.turn_far());
  EXPECT_TRUE(take(scheduler_, 0, 1, 2).empty());
}

}  // namespace
}  // namespace feedline::pipeline
