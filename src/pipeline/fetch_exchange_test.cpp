// SPDX-License-Identifier: Apache-2.0
// The test is the fetching thread, and the threads that come for samples.
#include "pipeline/fetch_exchange.h"

#include <gtest/gtest.h>

#include <thread>

#include "pipeline/fake_format.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

using Kind = FetchExchange::Step::Kind;

class FetchExchangeTest : public testing::Test {
 protected:
  static PipelinePlan planned() {
    const auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(10)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    auto plan = plan_given(**recipe, {.batch_size = 4, .num_workers = 1});
    EXPECT_TRUE(plan);
    plan->read_ahead_bytes = std::uint64_t{1} << 30;
    return *plan;
  }
  static void begin(FetchExchange& exchange) {
    exchange.begin(true);
    ASSERT_TRUE(exchange.turn_far());
    EXPECT_FALSE(exchange.turn_far()) << "somebody starts the thread";
    exchange.started(true);
    EXPECT_TRUE(exchange.is_far());
  }
  static void give(FetchExchange& exchange, const std::vector<std::uint64_t>& samples, std::uint64_t oldest = 0) {
    std::vector<GivenSample> given;
    for (const std::uint64_t sample : samples) given.push_back({sample, 0});
    exchange.give(given, oldest);
  }
  // Starts all that is to be fetched.
  std::vector<FetchExchange::Entry*> started(FetchExchange& exchange) {
    std::vector<FetchExchange::Entry*> entries;
    while (true) {
      const auto step = exchange.next(fresh_);
      if (step.kind == Kind::kMakeEntry) {
        fresh_.emplace_back();
        continue;
      }
      if (step.kind != Kind::kFetch) {
        EXPECT_EQ(step.kind, Kind::kWait);
        return entries;
      }
      entries.push_back(step.entry);
    }
  }
  static void finish(FetchExchange& exchange, FetchExchange::Entry& entry, std::size_t bytes, bool was_near = false) {
    entry.bytes = std::span<const std::byte>(entry.buffer.resize(bytes));
    entry.was_near = was_near;
    storage::Fetch* const fetch = &entry;
    exchange.finished({&fetch, 1});
  }
  std::optional<FetchExchange::Taken> take(FetchExchange& exchange, std::uint64_t batch, std::uint64_t row,
                                           std::uint64_t sample) {
    return exchange.take({0, nullptr, batch, row, true}, sample, waiter_, buffer_);
  }

  const PipelinePlan plan_ = planned();
  telemetry::HeldBytes held_;
  FetchExchange exchange_{plan_, false, held_}, turning_{plan_, true, held_};
  FetchExchange::Entries fresh_;
  const std::shared_ptr<FetchWaiter> waiter_ = std::make_shared<FetchWaiter>();
  memory::ByteBuffer buffer_;
};

TEST_F(FetchExchangeTest, WhatWasFetchedOfAnOrderThatIsNoMoreIsNobodys) {
  begin(exchange_);
  give(exchange_, {1, 2, 3});
  const auto before = started(exchange_);
  ASSERT_EQ(before.size(), 3u);
  for (auto* entry : before) finish(exchange_, *entry, 10);
  EXPECT_EQ(take(exchange_, 0, 0, 1)->bytes->size(), 10u);
  exchange_.begin(true);
  give(exchange_, {2});
  const auto after = started(exchange_);
  ASSERT_EQ(after.size(), 1u);
  finish(exchange_, *after[0], 20);
  EXPECT_EQ(take(exchange_, 0, 0, 2)->bytes->size(), 20u) << "that of the order before";
  EXPECT_FALSE(take(exchange_, 0, 1, 3));
}

TEST_F(FetchExchangeTest, TurnsNearOnceAllIsInMemoryAndHoldsNothing) {
  for (FetchExchange* exchange : {&exchange_, &turning_}) {
    begin(*exchange);
    for (std::uint64_t i = 0; i < 300 && exchange->is_far(); ++i) {
      give(*exchange, {i % 10}, i);
      const auto entries = started(*exchange);
      ASSERT_EQ(entries.size(), 1u);
      finish(*exchange, *entries[0], 10, i != 7);
      take(*exchange, i, 0, i % 10);
      if (i < 255) {
        EXPECT_TRUE(exchange->is_far()) << i;
      }
    }
    EXPECT_EQ(exchange->is_far(), exchange == &exchange_);
  }
  EXPECT_EQ(turning_.held_bytes(), 0u);
  EXPECT_GT(exchange_.held_bytes(), 0u) << "a spare one";
  EXPECT_FALSE(turning_.turn_far()) << "the thread is there";
  EXPECT_TRUE(turning_.is_far());
}

TEST_F(FetchExchangeTest, EndsOnceAllThatIsUnderWayIsCancelled) {
  begin(exchange_);
  give(exchange_, {1, 2});
  const auto entries = started(exchange_);
  exchange_.stop();
  EXPECT_EQ(exchange_.next(fresh_).kind, Kind::kCancel);
  EXPECT_EQ(exchange_.under_way(), std::vector<storage::Fetch*>(entries.begin(), entries.end()));
  for (auto* entry : entries) finish(exchange_, *entry, 10);
  EXPECT_EQ(exchange_.next(fresh_).kind, Kind::kEnd);
  EXPECT_FALSE(exchange_.turn_far());
}

TEST_F(FetchExchangeTest, WhereTheThreadBreaksOffNobodyWaitsForIt) {
  begin(exchange_);
  give(exchange_, {1, 2});
  ASSERT_EQ(started(exchange_).size(), 2u);
  {
    const std::jthread comes([this] { EXPECT_FALSE(take(exchange_, 0, 0, 1)); });
    while (waiter_.use_count() < 2) std::this_thread::yield();
    exchange_.break_off();
  }
  EXPECT_FALSE(exchange_.is_far());
  EXPECT_FALSE(exchange_.turn_far());
  EXPECT_FALSE(take(exchange_, 0, 1, 2));
}

}  // namespace
}  // namespace feedline::pipeline
