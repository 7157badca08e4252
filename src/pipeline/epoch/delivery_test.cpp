// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/delivery.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "batch/batch_layout.h"
#include "pipeline/epoch/epoch_fixture.h"
#include "pipeline/fake_device.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kRows = 4;

// An epoch of 20 samples in batches of four, filled by the test.
class DeliveryTest : public testing::Test {
 protected:
  explicit DeliveryTest(OnError on_error = OnError::kRaise, std::uint64_t budget = 0) : policy_(on_error, budget) {
    plan::OrderConfig order;
    order.size = 20;
    Epoch::Config config;
    config.epoch = 3;
    config.order = plan::make_order(order, 3);
    config.plan = {.batch_rows = kRows};
    epoch_ = std::make_unique<Epoch>(config, policy_);
    delivery_.begin({.epoch = 3}, 1000);
  }
  // Returns the next batch, complete, with errors in the given rows.
  std::shared_ptr<Slot> filled(const std::vector<std::uint64_t>& failed = {}) {
    auto lease = memory::Lease::take(device_->memory, layout_->bytes());
    EXPECT_TRUE(lease);
    Slot& slot = open_batch(*epoch_, *lease);
    slot.layout = layout_;
    while (auto ticket = epoch_->take_ticket()) ticket->assign_samples();
    for (const std::uint64_t row : failed)
      epoch_->note(slot, row, {slot.samples[row], one_bad(row, slot.samples[row], "row " + std::to_string(row)), {}});
    EXPECT_TRUE(slot.tickets.finish(kRows));
    epoch_->settle(slot);
    auto ready = epoch_->take_ready();
    EXPECT_TRUE(ready);
    return ready;
  }
  // Delivers a slot as the pipeline does.
  Result<void> take(Slot& slot, Batch& out, std::uint64_t now_ns = 2000) {
    const auto noted = delivery_.note(*epoch_, slot, now_ns);
    return delivery_.hand_over(slot, noted, epoch_->index_of(slot.batch), out);
  }
  LoaderStats stats(bool running, std::uint64_t now_ns) const {
    LoaderStats stats;
    delivery_.add_to(stats, running, now_ns);
    return stats;
  }

  const BadSamplePolicy policy_;
  std::unique_ptr<Epoch> epoch_;
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  std::shared_ptr<const batch::BatchLayout> layout_ =
      std::make_shared<batch::BatchLayout>(Schema{{"x", {DType::kInt64, {}}}}, kRows);
  Delivery delivery_{policy_, device_->location()};
};

TEST_F(DeliveryTest, AnEpochGoesOnBehindWhatWasNoted) {
  EXPECT_FALSE(delivery_.last_batch());
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    const auto slot = filled();
    Batch out;
    ASSERT_TRUE(take(*slot, out, 2000 + batch));
    EXPECT_EQ(out.rows(), kRows);
    EXPECT_EQ(delivery_.position().epoch, 3u);
    EXPECT_EQ(delivery_.position().position, (batch + 1) * kRows);
    EXPECT_EQ(delivery_.last_batch(), batch);
  }
  EXPECT_EQ(stats(true, 5'000'001'000).batches, 3u);
  EXPECT_EQ(stats(true, 5'000'001'000).samples, 12u);
  EXPECT_DOUBLE_EQ(stats(true, 5'000'001'000).wall_s, 5.0);
  EXPECT_DOUBLE_EQ(stats(false, 5'000'001'000).wall_s, 1002e-9) << "a finished epoch ended with its last batch";
  delivery_.begin({.epoch = 4, .position = 8}, 9000);
  EXPECT_EQ(delivery_.position().position, 8u);
  EXPECT_FALSE(delivery_.last_batch());
  EXPECT_EQ(delivery_.first_ns(), 1000u) << "of the first epoch";
}

TEST_F(DeliveryTest, TheConsumerWaitsFromItsFirstQuestionOn) {
  EXPECT_EQ(delivery_.waiting_since(), 0u);
  delivery_.wait(1500);
  delivery_.wait(1700);
  EXPECT_EQ(delivery_.waiting_since(), 1500u);
  const auto slot = filled();
  Batch out;
  ASSERT_TRUE(take(*slot, out));
  EXPECT_EQ(delivery_.waiting_since(), 0u);
}

TEST_F(DeliveryTest, RaiseGivesTheFirstBadRowAndNoBatch) {
  const auto slot = filled({3, 1});
  Batch out;
  const auto taken = take(*slot, out);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().what, "row 1; on_error=\"skip\" skips such samples");
  ASSERT_EQ(delivery_.bad().size(), 1u);
  const BadSample& bad = delivery_.bad().front().sample;
  EXPECT_EQ(bad.sample, 1u);
  EXPECT_EQ(bad.action, OnError::kRaise);
  EXPECT_EQ(bad.error.what, "row 1");
  EXPECT_EQ(delivery_.batches(), 0u);
  EXPECT_EQ(delivery_.position().position, kRows) << "the next one is the following batch";
}

class ReportTest : public DeliveryTest {
 protected:
  ReportTest() : DeliveryTest(OnError::kReport) {}
};

TEST_F(ReportTest, ABatchComesWithItsBadRows) {
  const auto slot = filled({2});
  Batch out;
  ASSERT_TRUE(take(*slot, out));
  ASSERT_EQ(out.bad().size(), 1u);
  EXPECT_EQ(out.bad()[0].row, 2u);
}

class BudgetTest : public DeliveryTest {
 protected:
  BudgetTest() : DeliveryTest(OnError::kReplace, 2) {}
  std::shared_ptr<Slot> with_bad(std::size_t bad) {
    auto slot = filled();
    for (std::size_t i = 0; i < bad; ++i) slot->bad.splice(slot->bad.end(), one_bad(0, 7));
    return slot;
  }
};

TEST_F(BudgetTest, EndsAnEpochWithOneBadSampleTooMany) {
  Batch out;
  EXPECT_TRUE(take(*with_bad(2), out));
  EXPECT_TRUE(take(*with_bad(0), out));
  const auto ended = take(*with_bad(1), out);
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().what.find("error_budget=2"), std::string::npos);
  EXPECT_EQ(delivery_.bad().size(), 3u) << "the sample that exceeded the budget is logged too";
  delivery_.begin({.epoch = 4}, 3000);
  EXPECT_TRUE(take(*with_bad(2), out, 4000)) << "each epoch has its own budget";
  EXPECT_EQ(delivery_.bad().size(), 5u);
}

}  // namespace
}  // namespace feedline::pipeline
