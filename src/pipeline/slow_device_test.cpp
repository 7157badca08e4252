// SPDX-License-Identifier: Apache-2.0

// Tests a device with its own memory and slow transfers: the transfer of a batch starts once the batch is final. It
// ends while later batches are filled, whatever happens to the epoch; transfers may end in any order.

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "device/device_contract.h"
#include "pipeline/fake_device.h"
#include "pipeline/fake_format.h"
#include "pipeline/pipeline.h"
#include "pipeline/variable_size_fixture.h"

namespace feedline::device {
namespace {

using namespace std::chrono_literals;

std::shared_ptr<Device> in_order() {
  return std::make_shared<pipeline::SlowDevice>(
      pipeline::SlowDevice::Behaviour{.takes = [](std::uint64_t) { return 2ms; }});
}
std::shared_ptr<Device> last_first() {
  return std::make_shared<pipeline::SlowDevice>(pipeline::SlowDevice::Behaviour{
      .takes = [](std::uint64_t n) { return std::chrono::milliseconds(30 - 7 * (n % 4)); }});
}

INSTANTIATE_TEST_SUITE_P(Slow, DeviceContract,
                         testing::Values(DeviceUnderTest{"in_order", &in_order},
                                         DeviceUnderTest{"last_first", &last_first}));

}  // namespace
}  // namespace feedline::device

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

using Behaviour = SlowDevice::Behaviour;
using Samples = std::vector<std::uint64_t>;

// Delivers images of a FakeFormat in batches of four through a SlowDevice.
class SlowDeviceTest : public testing::Test {
 protected:
  void make(Behaviour behaviour, LoaderOptions options = {}, std::set<std::uint64_t> damaged = {},
            std::uint64_t size = 103) {
    auto recipe = make_recipe({"fake", std::make_shared<FakeFormat>(size, std::move(damaged))},
                              {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    ASSERT_TRUE(recipe) << recipe.error().message();
    options.batch_size = 4;
    if (options.num_workers == 0) options.num_workers = 3;
    auto plan = plan_pipeline(**recipe, options);
    ASSERT_TRUE(plan) << plan.error().message();
    device_ = std::make_shared<SlowDevice>(std::move(behaviour));
    pipeline_ = std::make_unique<Pipeline>(*recipe, *plan, device_);
  }
  // Returns the next batch after its arrival, or the error.
  Result<std::optional<Batch>> next() {
    Batch batch;
    FEEDLINE_TRY(const auto polled, pipeline_->poll(200s, batch));
    if (polled == Loader::Polled::kEnd) return std::nullopt;
    EXPECT_EQ(polled, Loader::Polled::kBatch);
    FEEDLINE_CHECK_OK(batch.wait());
    return batch;
  }
  // Reads the rest of the epoch, and checks pixels and labels. Returns the samples of each batch, or {} for an error.
  std::vector<Samples> rest() {
    std::vector<Samples> batches;
    while (true) {
      const auto batch = next();
      if (batch && !*batch) return batches;
      batches.push_back({});
      if (!batch) continue;
      for (std::uint64_t row = 0; row < (*batch)->rows(); ++row) batches.back().push_back(looked_at(**batch, row));
    }
  }
  static std::uint64_t looked_at(const Batch& batch, std::uint64_t row) {
    const std::uint64_t sample = batch.samples()[row];
    for (const BadRow& bad : batch.bad())
      if (bad.row == row) return 1000 + sample;
    const ArrayView &image = batch.fields()[0].array, &label = batch.fields()[1].array;
    EXPECT_EQ(std::to_integer<std::uint64_t>(image.data[row * 48 + 47]), sample % 256);
    EXPECT_EQ(static_cast<std::uint64_t>(label.as<std::int64_t>()[row]), sample);
    return sample;
  }

  std::shared_ptr<SlowDevice> device_;
  std::unique_ptr<Pipeline> pipeline_;
};

std::vector<Samples> all_in_order(std::uint64_t size) {
  std::vector<Samples> batches;
  for (std::uint64_t sample = 0; sample < size; ++sample) {
    if (sample % 4 == 0) batches.emplace_back();
    batches.back().push_back(sample);
  }
  return batches;
}

std::chrono::milliseconds last_comes_first(std::uint64_t number) { return std::chrono::milliseconds(9 - number % 10); }

TEST_F(SlowDeviceTest, BatchesComeInOrderThoughTheyArriveInAnother) {
  make({.takes = last_comes_first});
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_TRUE(pipeline_->begin({.epoch = epoch}, true));
    EXPECT_EQ(rest(), all_in_order(103));
  }
}

TEST_F(SlowDeviceTest, ABatchSaysWhereItIsAndWhenItIsThere) {
  std::atomic<bool> may_end = false;
  make({.takes = [&](std::uint64_t) { return may_end ? 0ms : 10min; }}, {.num_workers = 1});
  ASSERT_TRUE(pipeline_->begin({}, false));
  Batch batch;
  ASSERT_EQ(pipeline_->poll(200s, batch), Loader::Polled::kBatch) << "it is delivered before it has arrived";
  EXPECT_EQ(batch.device(), (DeviceLocation{DeviceKind::kCuda, 3}));
  EXPECT_FALSE(batch.is_ready());
  pipeline_.reset();
  device_.reset();  // transfers in flight finish early on this device
  EXPECT_TRUE(batch.wait());
  EXPECT_TRUE(batch.is_ready());
  EXPECT_EQ(looked_at(batch, 3), 3u);
}

// While the first batches are in transfer, which takes longer than the test, other batches are filled and their
// transfers started.
TEST_F(SlowDeviceTest, ThreadsFillWhileBatchesAreOnTheirWay) {
  make({.takes = [](std::uint64_t) { return 10min; }}, {.memory_budget = 2 << 10});
  EXPECT_GT(pipeline_->plan().slots, 4u);
  ASSERT_TRUE(pipeline_->begin({}, false));
  const auto deadline = std::chrono::steady_clock::now() + 100s;
  // the last one has started before its thread reports it as ready
  while (pipeline_->stats().ready_batches < pipeline_->plan().slots && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(device_->on_their_way(), pipeline_->plan().slots);
  EXPECT_EQ(pipeline_->stats().ready_batches, pipeline_->plan().slots) << "each can be delivered";
}

// A slow begin() blocks only the thread that calls it.
TEST_F(SlowDeviceTest, TheLockIsFreeWhileTheDeviceBegins) {
  std::atomic<int> inside = 0;
  std::atomic<bool> goes_on = false;
  make({.before_begin =
            [&] {
              ++inside;
              while (!goes_on) std::this_thread::yield();
            }},
       {.num_workers = 2});
  ASSERT_TRUE(pipeline_->begin({}, false));
  while (inside < 2) std::this_thread::yield();  // another thread has filled another batch
  EXPECT_EQ(pipeline_->stats().ready_batches, 0u);
  Batch batch;
  EXPECT_EQ(pipeline_->poll(1ms, batch), Loader::Polled::kPending);
  EXPECT_EQ(pipeline_->position().position, 0u);
  goes_on = true;
  EXPECT_EQ(rest(), all_in_order(103));
}

TEST_F(SlowDeviceTest, WhatItRefusesIsAnErrorAtItsPlaceInTheOrder) {
  make({.takes = last_comes_first, .refuses = [](std::uint64_t number) { return number == 5; }}, {.num_workers = 1});
  ASSERT_TRUE(pipeline_->begin({}, false));
  auto expected = all_in_order(103);
  expected[5].clear();
  EXPECT_EQ(rest(), expected);
  EXPECT_EQ(pipeline_->stats().batches, 25u) << "it is not counted";
}

TEST_F(SlowDeviceTest, WhatItLosesOnTheWayIsAnErrorAtItsPlaceInTheOrder) {
  make({.takes = last_comes_first, .loses = [](std::uint64_t number) { return number == 5; }}, {.num_workers = 1});
  ASSERT_TRUE(pipeline_->begin({}, false));
  auto expected = all_in_order(103);
  expected[5].clear();
  EXPECT_EQ(rest(), expected);
}

TEST_F(SlowDeviceTest, BadSamplesAreAsOnTheHost) {
  const std::set<std::uint64_t> damaged{1, 2, 40, 77, 101};
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace, OnError::kReport, OnError::kRaise})
    for (const bool in_order : {true, false}) {
      const LoaderOptions options{.in_order = in_order, .on_error = on_error};
      make({.takes = last_comes_first}, options, damaged);
      ASSERT_TRUE(pipeline_->begin({}, false));
      auto slow = rest();
      auto recipe = make_recipe({"fake", std::make_shared<FakeFormat>(103, damaged)}, {op::CenterCrop{{4, 4}}},
                                std::nullopt, Layout::kNchw);
      LoaderOptions of_host = options;
      of_host.batch_size = 4;
      of_host.num_workers = 1;
      pipeline_ = std::make_unique<Pipeline>(*recipe, *plan_pipeline(**recipe, of_host));
      ASSERT_TRUE(pipeline_->begin({}, false));
      auto host = rest();
      for (auto* batches : {&slow, &host})
        if (!in_order) std::ranges::sort(*batches);
      EXPECT_EQ(slow, host) << "on_error " << static_cast<int>(on_error) << ", in order " << in_order;
    }
}

TEST_F(SlowDeviceTest, EpochsMayBeAbandonedAndLoadersClosedWhileBatchesAreOnTheirWay) {
  make({.takes = [](std::uint64_t) { return 20ms; }});
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    ASSERT_TRUE(pipeline_->begin({.epoch = epoch}, true));
    if (epoch % 2 == 1) {
      ASSERT_TRUE(next());
    }
  }
  ASSERT_TRUE(pipeline_->begin({.epoch = 10}, true));
  EXPECT_EQ(rest(), all_in_order(103));
  ASSERT_TRUE(pipeline_->begin({.epoch = 11}, true));
  const auto memory = device_->memory;
  pipeline_->stop();
  EXPECT_EQ(pipeline_->stats().held_bytes, 0u);
  pipeline_.reset();
  device_.reset();
  EXPECT_EQ(memory->blocks, 1000u) << "nothing of it is left";
}

TEST_F(SlowDeviceTest, MemoryIsPreparedBeforeTheFirstBatch) {
  make({});
  EXPECT_FALSE(device_->memory->prepared);
  ASSERT_TRUE(pipeline_->begin({}, false));
  const PipelinePlan& plan = pipeline_->plan();
  EXPECT_EQ(device_->memory->prepared, (std::pair<std::size_t, std::size_t>(plan.batch_bytes, plan.slots)));
}

// Arrays of variable-size fields are transferred to the device; text is not.
TEST_F(SlowDeviceTest, VariableSizeFieldsArriveTheSame) {
  const LoaderOptions options{.batch_size = 8, .num_workers = 4, .memory_budget = 1 << 20};
  VariableSizeRun host(VariableSizeSamples::recipe(203), options, {});
  const auto device = std::make_shared<SlowDevice>(Behaviour{.takes = last_comes_first});
  VariableSizeRun slow(VariableSizeSamples::recipe(203), options, {}, device);
  EXPECT_EQ(slow.epoch(), host.epoch());
  EXPECT_EQ(device->begun(), 2u * 26) << "the dense and the composed part of each batch";
}

}  // namespace
}  // namespace feedline::pipeline
