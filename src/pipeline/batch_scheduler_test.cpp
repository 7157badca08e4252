// SPDX-License-Identifier: Apache-2.0
#include "pipeline/batch_scheduler.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "pipeline/epoch/epoch_fixture.h"
#include "pipeline/fake_device.h"
#include "pipeline/fake_format.h"

namespace feedline::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kRows = 4;
constexpr std::size_t kWorkers = 2;

// The dataset has a hundred samples, in batches of four; two batches are prefetched. The test acts as all workers and
// the consumer in one thread, so no call may block while there is work to do.
class BatchSchedulerTest : public testing::Test {
 protected:
  explicit BatchSchedulerTest(OnError on_error = OnError::kRaise) : policy_(on_error, 0) {
    auto recipe =
        make_recipe({"fake", std::make_shared<FakeFormat>(100)}, {op::CenterCrop{{4, 4}}}, std::nullopt, Layout::kNchw);
    EXPECT_TRUE(recipe);
    recipe_ = *recipe;
    auto plan = plan_pipeline(*recipe_, {.batch_size = kRows, .num_workers = kWorkers});
    EXPECT_TRUE(plan);
    plan_ = *plan;
    plan_.slots = 2;
    make_scheduler();
  }
  void make_scheduler() { make_scheduler(device_); }
  void make_scheduler(std::shared_ptr<device::Device> device) {
    scheduler_ = std::make_unique<BatchScheduler>(
        BatchScheduler::Parts{*recipe_, plan_, policy_, counters_, progress_, nullptr, std::move(device)});
  }
  std::unique_ptr<Epoch> epoch(std::uint64_t number, std::uint64_t position = 0) const {
    plan::OrderConfig order;
    order.size = 100;
    Epoch::Config config;
    config.epoch = number;
    config.order = plan::make_order(order, number);
    config.plan = {.batch_rows = kRows, .begin = position};
    config.prepares = scheduler_->prepares();
    return std::make_unique<Epoch>(config, policy_);
  }
  Result<void> begin(std::uint64_t number, bool prepare_next = false, std::uint64_t position = 0) {
    return scheduler_->begin({.epoch = number, .position = position}, epoch(number, position),
                             prepare_next ? epoch(number + 1) : nullptr);
  }
  // Takes all rows of the next batch with untaken rows.
  Task fill_batch() {
    Task task;
    EXPECT_TRUE(scheduler_->next(0, task, false));
    task.ticket.assign_samples();
    for (std::uint64_t row = 1; row < kRows; ++row) {
      EXPECT_TRUE(task.ticket.advance());
      task.ticket.assign_samples();
    }
    EXPECT_FALSE(task.ticket.advance());
    EXPECT_TRUE(task.ticket.slot->tickets.finish(kRows));
    return task;
  }
  // Settles a batch, and takes a row of the next one.
  Task settled(Task task) {
    EXPECT_TRUE(scheduler_->next(0, task, true));
    return task;
  }
  Result<Loader::Polled> poll() { return scheduler_->poll(0ms, batch_); }
  LoaderStats stats() const {
    LoaderStats stats;
    scheduler_->add_to(stats);
    return stats;
  }

  std::shared_ptr<const Recipe> recipe_;
  PipelinePlan plan_;
  const BadSamplePolicy policy_;
  std::vector<telemetry::ThreadCounters> counters_{kWorkers + 1};
  std::vector<Progress> progress_{kWorkers};
  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  std::unique_ptr<BatchScheduler> scheduler_;
  Batch batch_;
};

bool comes_true(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 200s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(BatchSchedulerTest, ABatchIsReadyOnceItsLastRowIsSettled) {
  ASSERT_TRUE(begin(0));
  EXPECT_EQ(poll(), Loader::Polled::kPending);
  Task task = fill_batch();
  EXPECT_EQ(poll(), Loader::Polled::kPending) << "all rows are finished, but not reported";
  const Task next = settled(std::move(task));
  EXPECT_EQ(next.ticket.slot->batch, 1u);
  EXPECT_EQ(stats().ready_batches, 1u);
  EXPECT_EQ(stats().held_bytes, 2 * plan_.batch_bytes);
  EXPECT_EQ(poll(), Loader::Polled::kBatch);
  EXPECT_EQ(batch_.rows(), kRows);
  EXPECT_EQ(scheduler_->position().position, kRows);
  EXPECT_EQ(stats().held_bytes, plan_.batch_bytes);
  EXPECT_EQ(stats().held_bytes_peak, 2 * plan_.batch_bytes);
}

TEST_F(BatchSchedulerTest, AWorkerSleepsWhereThereIsNoRoomAndGoesOnWhenABatchIsTaken) {
  ASSERT_TRUE(begin(0));
  Task first = fill_batch();
  const Task second = settled(std::move(first));  // has one row of four
  for (int row = 1; row < 4; ++row) {
    Task rest;
    ASSERT_TRUE(scheduler_->next(0, rest, false));
    EXPECT_EQ(rest.ticket.slot, second.ticket.slot);
  }
  std::atomic<std::uint64_t> got{99};
  std::thread worker([&] {
    Task task;
    if (scheduler_->next(1, task, false)) got = task.ticket.slot->batch;
  });
  std::this_thread::sleep_for(20ms);  // long enough for most threads to fall asleep
  EXPECT_EQ(got, 99u) << "there is no room";
  EXPECT_EQ(poll(), Loader::Polled::kBatch);
  worker.join();
  EXPECT_EQ(got, 2u);
  EXPECT_EQ(stats().held_bytes_peak, 2 * plan_.batch_bytes);
}

// The memory of an abandoned batch is freed as soon as its last started row is finished.
TEST_F(BatchSchedulerTest, AWorkerThatWaitsHoldsNoBatch) {
  ASSERT_TRUE(begin(0));
  Task task = fill_batch();
  const std::weak_ptr<Slot> slot = task.ticket.slot;
  ASSERT_TRUE(begin(0, false, 100)) << "at the end: no work is left";
  EXPECT_FALSE(slot.expired());
  std::thread worker([&] { EXPECT_FALSE(scheduler_->next(0, task, true)); });
  EXPECT_TRUE(comes_true([&] { return slot.expired(); }));
  scheduler_->stop();
  worker.join();
}

TEST_F(BatchSchedulerTest, WhatComesOfAnAbandonedEpochIsNobodys) {
  ASSERT_TRUE(begin(0));
  Task task = fill_batch();
  ASSERT_TRUE(begin(0));
  std::vector<RowFiller::Noted> noted(1);
  noted[0].outcome.failed = one_bad(0, 0);
  scheduler_->note(task, noted);
  EXPECT_TRUE(task.ticket.slot->failures.empty());
  const Task next = settled(std::move(task));
  EXPECT_EQ(next.ticket.slot->batch, 0u) << "of the current epoch";
  EXPECT_EQ(poll(), Loader::Polled::kPending);
}

TEST_F(BatchSchedulerTest, WithoutMemoryAnEpochFailsAndTheNextOneMaySucceed) {
  ASSERT_TRUE(begin(0));
  device_->memory->blocks = 0;
  std::thread worker([&] {
    Task task;
    EXPECT_TRUE(scheduler_->next(0, task, false));
    EXPECT_EQ(task.epoch, 1u);
  });
  EXPECT_TRUE(comes_true([&] { return !poll(); }));
  const auto failed = poll();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().what, "no memory for a batch");
  device_->memory->blocks = 1;
  EXPECT_TRUE(begin(1));
  worker.join();
}

TEST_F(BatchSchedulerTest, WithoutMemoryForAnEpochThatIsOnlyPreparedNothingFails) {
  ASSERT_TRUE(begin(0, true, 96));  // one batch, and the next epoch
  Task task = fill_batch();
  device_->memory->blocks = 0;
  std::thread worker([&] { EXPECT_FALSE(scheduler_->next(0, task, true)); });
  EXPECT_TRUE(comes_true([&] { return poll() == Loader::Polled::kBatch; }));
  EXPECT_EQ(poll(), Loader::Polled::kEnd);
  scheduler_->stop();
  worker.join();
}

TEST_F(BatchSchedulerTest, ABrokenPipelineStaysBroken) {
  ASSERT_TRUE(begin(0));
  scheduler_->break_off(Error{ErrorCode::kInternal, "a thread has died", {}, 0});
  for (int times = 0; times < 2; ++times) {
    const auto polled = poll();
    ASSERT_FALSE(polled);
    EXPECT_EQ(polled.error().code, ErrorCode::kInternal);
    EXPECT_FALSE(begin(1)) << "another epoch has no more threads";
  }
  scheduler_->stop();
  EXPECT_EQ(poll().error().code, ErrorCode::kCancelled);
}

TEST_F(BatchSchedulerTest, ClosedItGivesNothingToAnybody) {
  ASSERT_TRUE(begin(0));
  Task task = fill_batch();
  const auto slot = task.ticket.slot;
  scheduler_->stop();
  EXPECT_TRUE(scheduler_->must_return(0));
  EXPECT_FALSE(scheduler_->next(0, task, true));
  EXPECT_EQ(task.ticket.slot, nullptr);
  EXPECT_EQ(poll().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(begin(1).error().code, ErrorCode::kCancelled);
  scheduler_->clear();
  EXPECT_EQ(stats().held_bytes, 0u);
}

TEST_F(BatchSchedulerTest, AWorkerThatIsNotWantedReturns) {
  ASSERT_TRUE(begin(0));
  EXPECT_FALSE(scheduler_->must_return(0));
  EXPECT_TRUE(scheduler_->must_return(kWorkers)) << "no more than that";
}

TEST_F(BatchSchedulerTest, PagesGoUnderRowsThatNobodyHas) {
  ASSERT_TRUE(begin(0));
  Task task;
  ASSERT_TRUE(scheduler_->next(0, task, false));
  Slot& slot = *task.ticket.slot;
  scheduler_->reuse_pages(slot);
  EXPECT_TRUE(device_->memory->asked.empty()) << "none are spare";
  device_->memory->spare = 5;
  scheduler_->reuse_pages(slot);
  scheduler_->reuse_pages(slot);
  EXPECT_EQ(device_->memory->asked.size(), 1u) << "once";
  EXPECT_EQ(device_->memory->asked[0].data, slot.lease->data());
  EXPECT_FALSE(scheduler_->must_return(0));
  EXPECT_TRUE(task.ticket.advance()) << "the rows are available again";
}

// While a worker maps pages into the remaining rows, or allocates the next batch, the lock is free. Other workers sleep
// until there are rows, and do not open another batch; the consumer is not blocked.
TEST_F(BatchSchedulerTest, OthersWaitForRowsThatAreBeingPreparedAndTheLockIsFree) {
  ASSERT_TRUE(begin(0));
  Task task;
  std::atomic<std::uint64_t> got{99};
  const auto one_more = [&] {
    Task other;
    if (scheduler_->next(1, other, false)) got = other.ticket.slot->batch;
  };
  std::thread other;
  const auto look = [&] {
    other = std::thread(one_more);
    std::this_thread::sleep_for(20ms);  // long enough for most threads to fall asleep
    EXPECT_EQ(got, 99u) << "the rows are not available yet";
    EXPECT_LE(stats().held_bytes, plan_.batch_bytes) << "it has opened another batch";
    EXPECT_EQ(poll(), Loader::Polled::kPending);
  };
  device_->memory->before_allocate = look;
  ASSERT_TRUE(scheduler_->next(0, task, false));
  other.join();
  EXPECT_EQ(got, 0u) << "the oldest batch";
  got = 99;
  device_->memory->before_reuse = look;
  device_->memory->spare = 5;
  scheduler_->reuse_pages(*task.ticket.slot);
  other.join();
  EXPECT_EQ(got, 0u);
}

// An epoch may end while a worker allocates memory for it: the batch is dropped and its memory freed.
TEST_F(BatchSchedulerTest, ABatchWhoseEpochEndsWhileItIsOpenedIsNobodys) {
  ASSERT_TRUE(begin(0));
  device_->memory->before_allocate = [&] { ASSERT_TRUE(begin(7)); };
  Task task;
  ASSERT_TRUE(scheduler_->next(0, task, false));
  EXPECT_EQ(task.epoch, 7u);
  EXPECT_EQ(device_->memory->blocks, 999u) << "one is in use";
  EXPECT_EQ(stats().held_bytes, plan_.batch_bytes);
}

// The thread that finished a batch's last row starts the device work; the batch is not delivered before that.
TEST_F(BatchSchedulerTest, ADeviceBeginsWithABatchWithoutTheLock) {
  int begun = 0;
  const auto device = std::make_shared<SlowDevice>(SlowDevice::Behaviour{.before_begin = [&] {
    ++begun;
    EXPECT_EQ(poll(), Loader::Polled::kPending);
    EXPECT_EQ(stats().ready_batches, 0u);
    EXPECT_EQ(stats().held_bytes, plan_.batch_bytes);
  }});
  make_scheduler(device);
  ASSERT_TRUE(begin(0));
  Task task = fill_batch();
  EXPECT_EQ(begun, 0);
  const Task next = settled(std::move(task));
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(stats().ready_batches, 1u);
  EXPECT_EQ(poll(), Loader::Polled::kBatch);
  EXPECT_EQ(scheduler_->position().position, kRows);
  EXPECT_EQ(stats().batches, 1u);
}

TEST_F(BatchSchedulerTest, ABatchWhoseEpochEndsWhileTheDeviceBeginsIsNobodys) {
  bool once = true;
  const auto device = std::make_shared<SlowDevice>(SlowDevice::Behaviour{.before_begin = [&] {
    if (std::exchange(once, false)) {
      ASSERT_TRUE(begin(7));
    }
  }});
  make_scheduler(device);
  ASSERT_TRUE(begin(0));
  const Task next = settled(fill_batch());
  EXPECT_EQ(next.epoch, 7u);
  EXPECT_EQ(poll(), Loader::Polled::kPending);
  EXPECT_EQ(stats().held_bytes, plan_.batch_bytes);
}

TEST_F(BatchSchedulerTest, ABatchThatTheDeviceRefusesIsNotCounted) {
  make_scheduler(std::make_shared<SlowDevice>(SlowDevice::Behaviour{.refuses = [](std::uint64_t) { return true; }}));
  ASSERT_TRUE(begin(0));
  const Task next = settled(fill_batch());
  const auto polled = poll();
  ASSERT_FALSE(polled);
  EXPECT_EQ(polled.error().what, "the device is gone");
  EXPECT_EQ(stats().batches, 0u);
  EXPECT_EQ(stats().samples, 0u);
}

class ExchangeSkips : public BatchSchedulerTest {
 protected:
  ExchangeSkips() : BatchSchedulerTest(OnError::kSkip) {}
  static RowFiller::Noted bad_row(const Slot& slot, std::uint64_t row) {
    return {row, {slot.samples[row], one_bad(row, slot.samples[row]), {}}};
  }
};

TEST_F(ExchangeSkips, WorkersReturnForARefillWhichGoesFirst) {
  ASSERT_TRUE(begin(0));
  Task task = fill_batch();
  Task other;
  ASSERT_TRUE(scheduler_->next(1, other, false));
  EXPECT_EQ(other.ticket.slot->batch, 1u);
  EXPECT_FALSE(scheduler_->must_return(1));
  const auto slot = task.ticket.slot;
  std::vector<RowFiller::Noted> noted{bad_row(*slot, 2)};
  scheduler_->note(task, noted);
  const Task refill = settled(std::move(task));
  EXPECT_TRUE(refill.ticket.is_refill);
  EXPECT_EQ(refill.ticket.slot, slot);
  EXPECT_EQ(refill.ticket.sample(), 99u);
  EXPECT_FALSE(scheduler_->must_return(1)) << "the refill is in progress";
  EXPECT_EQ(poll(), Loader::Polled::kPending);
  EXPECT_TRUE(slot->tickets.finish(1));
  static_cast<void>(settled(refill));
  EXPECT_EQ(poll(), Loader::Polled::kBatch);
}

// Refills of the first batch use all rows of the other two, while a row of the last one is still being filled.
TEST_F(ExchangeSkips, ABatchThatIsTakenOverDoesNotEndTheConsumersWait) {
  plan_.slots = 3;
  plan_.timeout = 1h;
  make_scheduler();
  ASSERT_TRUE(begin(0, false, 88));
  Task first = fill_batch(), second = fill_batch();
  Task last = settled(std::move(second));
  EXPECT_EQ(last.ticket.slot->batch, 2u);
  const std::vector<std::uint64_t> refills{99, 98, 97, 96, 95, 94, 93, 92};
  const auto slot = first.ticket.slot;
  std::vector<RowFiller::Noted> noted;
  for (std::uint64_t row = 0; row < kRows; ++row) noted.push_back(bad_row(*slot, row));
  scheduler_->note(first, noted);
  Task task = settled(std::move(first));
  for (const std::uint64_t refill : refills) {
    ASSERT_TRUE(task.ticket.is_refill);
    ASSERT_EQ(task.ticket.sample(), refill);
    if (refill >= 96) noted = {bad_row(*slot, task.ticket.row)};
    if (refill >= 96) scheduler_->note(task, noted);
    EXPECT_TRUE(slot->tickets.finish(1));
    task = settled(std::move(task));
  }
  EXPECT_EQ(poll(), Loader::Polled::kBatch);
  const auto polled = poll();
  ASSERT_TRUE(polled) << polled.error().message();
  EXPECT_EQ(polled, Loader::Polled::kPending) << "an hour has not passed";
}

}  // namespace
}  // namespace feedline::pipeline
