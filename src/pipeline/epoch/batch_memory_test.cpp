// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/batch_memory.h"

#include <gtest/gtest.h>

#include "pipeline/fake_device.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kRows = 8, kImageBytes = 3 * 4 * 4;

class BatchMemoryTest : public testing::Test {
 protected:
  BatchMemoryTest() {
    auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(100)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe);
    recipe_ = *recipe;
    auto plan = plan_pipeline(*recipe_, {.batch_size = kRows, .num_workers = 1});
    EXPECT_TRUE(plan);
    plan_ = *plan;
    slot_.rows = kRows;
    slot_.samples.resize(kRows);
    slot_.tickets.open(kRows);
  }
  void open(BatchMemory& memory) {
    auto taken = memory.take();
    ASSERT_TRUE(taken);
    EXPECT_EQ((*taken)->samples.size(), kRows);
    EXPECT_NE((*taken)->draws, nullptr);
    slot_.lease = std::move((*taken)->lease);
    memory.lay_out(slot_);
  }

  std::shared_ptr<const Recipe> recipe_;
  PipelinePlan plan_;
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  std::shared_ptr<FakeAllocator> allocator_ = device_->memory;
  Slot slot_;
};

TEST_F(BatchMemoryTest, IsWhatTheLargestBatchTakes) {
  BatchMemory memory(*recipe_, plan_, device_);
  open(memory);
  EXPECT_EQ(slot_.lease->bytes(), plan_.batch_bytes);
  EXPECT_EQ(slot_.layout, plan_.layouts[0]);
  allocator_->blocks = 0;
  EXPECT_FALSE(memory.take());
}

TEST_F(BatchMemoryTest, WithoutLayoutsABatchIsLaidOutForItsOwnSamples) {
  plan_.layouts.clear();
  BatchMemory memory(*recipe_, plan_, device_);
  slot_.samples.resize(3);
  open(memory);
  EXPECT_EQ(slot_.layout->bytes(), batch::BatchLayout(recipe_->schema, 3).bytes());
}

TEST_F(BatchMemoryTest, AsksOncePerSparePagesAndOnlyForRowsThatNobodyHasBegun) {
  BatchMemory memory(*recipe_, plan_, device_);
  open(memory);
  memory.reuse_pages(slot_);
  EXPECT_TRUE(allocator_->asked.empty()) << "none are spare";
  EXPECT_FALSE(memory.has_spare(slot_));

  EXPECT_EQ(slot_.tickets.take(3).rows, 3u);
  allocator_->spare = 7;
  EXPECT_TRUE(memory.has_spare(slot_));
  memory.reuse_pages(slot_);
  ASSERT_EQ(allocator_->asked.size(), 1u);
  EXPECT_EQ(allocator_->asked[0].data, slot_.lease->data());
  EXPECT_EQ(allocator_->asked[0].first, 3 * kImageBytes);
  EXPECT_EQ(allocator_->asked[0].last, kRows * kImageBytes);
  EXPECT_FALSE(memory.has_spare(slot_));
  memory.reuse_pages(slot_);
  EXPECT_EQ(allocator_->asked.size(), 1u) << "the same pages";
  EXPECT_EQ(slot_.tickets.take(kRows).first, 3u) << "rows are handed out again from the same position";

  allocator_->spare = 8;
  memory.reuse_pages(slot_);
  EXPECT_EQ(allocator_->asked.size(), 1u) << "threads hold all rows";
  EXPECT_FALSE(memory.has_spare(slot_)) << "nor is there a reason to retry";
}

}  // namespace
}  // namespace feedline::pipeline
