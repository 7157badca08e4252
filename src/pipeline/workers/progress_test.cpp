// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/progress.h"

#include <gtest/gtest.h>

#include <vector>

#include "pipeline/epoch/epoch_fixture.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

class StallTest : public testing::Test {
 protected:
  StallTest() {
    auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(100)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe);
    recipe_ = *recipe;
    plan::OrderConfig order;
    order.size = 100;
    Epoch::Config config;
    config.order = plan::make_order(order, 0);
    config.plan = {.batch_rows = 10, .begin = 30};
    epoch_ = std::make_unique<Epoch>(config, policy_);
  }
  Error stall() const { return stall_error(1500ms, AwaitedBatch::of(epoch_.get()), threads_, *recipe_); }
  bool says(const std::string& words) const { return stall().what.find(words) != std::string::npos; }

  std::shared_ptr<const Recipe> recipe_;
  const BadSamplePolicy policy_{OnError::kRaise, 0};
  std::unique_ptr<Epoch> epoch_;
  std::vector<Progress> threads_{3};
};

TEST_F(StallTest, WithoutABatchItSaysOnlyForHowLong) {
  EXPECT_EQ(stall().code, ErrorCode::kStalled);
  EXPECT_TRUE(says("no batch for 1.5"));
  EXPECT_FALSE(says("still waits"));
  epoch_.reset();
  EXPECT_FALSE(says("still waits"));
}

TEST_F(StallTest, CountsWhatThreadsHaveFilledAndNotFinished) {
  Slot& slot = open_batch(*epoch_);
  EXPECT_TRUE(says("batch 3 still waits for 10 of 10 samples"));
  slot.tickets.finish(2);
  threads_[0].slot = &slot;
  threads_[0].filled = 3;
  threads_[1].slot = &open_batch(*epoch_);
  threads_[1].filled = 4;  // of another batch
  EXPECT_TRUE(says("batch 3 still waits for 5 of 10 samples"));
  slot.tickets.finish(6);  // three of them are counted twice: the number missing is never negative
  EXPECT_TRUE(says("waits for 0 of 10 samples"));
}

TEST_F(StallTest, NamesTheFirstSampleThatAThreadIsAt) {
  Slot& slot = open_batch(*epoch_);
  EXPECT_TRUE(stall().where.key.empty()) << "no thread is processing it";
  for (std::size_t thread = 1; thread < threads_.size(); ++thread) {
    threads_[thread].slot = &slot;
    threads_[thread].row = 8 - 3 * thread;
  }
  EXPECT_EQ(stall().where.key, "key-32") << "row 2 of a batch whose first position is 30";
  EXPECT_EQ(stall().where.stage, "batch");
}

}  // namespace
}  // namespace feedline::pipeline
