// SPDX-License-Identifier: Apache-2.0
// Cancellation, deadlines and destruction, with reads that block until the test releases them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <thread>

#include "storage/fetch.h"
#include "storage/gated_storage.h"
#include "storage/orphaned_buffers.h"
#include "storage/storage_contract.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;
using Clock = FetchQueue::Clock;

class FetchControl : public testing::TestWithParam<QueueKind> {
 protected:
  ~FetchControl() override {
    gate_->open();
    queue_.reset();
    expect_nothing_left();
  }
  static void expect_nothing_left() {
    const auto longest = Clock::now() + 200s;
    while (orphaned_buffers() > 0 && Clock::now() < longest) std::this_thread::yield();
    EXPECT_EQ(orphaned_buffers(), 0u);
  }
  std::unique_ptr<Fetch> start(const std::string& name, Clock::time_point deadline = Clock::time_point::max()) {
    auto fetch = std::make_unique<Fetch>();
    fetch->piece.path = folder_.write(name, "content of " + name);
    fetch->deadline = deadline;
    queue_->start(*fetch);
    return fetch;
  }
  Fetch* next() {
    Fetch* fetch = queue_->finished(Clock::now() + 200s);
    EXPECT_NE(fetch, nullptr) << "waited for what does not come";
    return fetch;
  }
  static void expect_cancelled(const Fetch& fetch) {
    ASSERT_FALSE(fetch.bytes);
    EXPECT_EQ(fetch.bytes.error().code, ErrorCode::kCancelled);
    EXPECT_NE(fetch.bytes.error().message().find(fetch.piece.path), std::string::npos);
    EXPECT_FALSE(fetch.piece.path.empty());
    EXPECT_EQ(fetch.buffer.capacity(), 0u) << "it is being written to";
  }

  TemporaryFolder folder_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::unique_ptr<FetchQueue> queue_ = make_fetch_queue(std::make_shared<GatedStorage>(gate_), GetParam());
};

TEST_P(FetchControl, WhatIsCancelledIsGivenAtOnceAndTheOthersInTheirTime) {
  auto first = start("first"), second = start("second"), third = start("third");
  EXPECT_EQ(queue_->finished(Clock::now() + 2ms), nullptr);
  queue_->cancel(*second);
  queue_->cancel(*second);
  ASSERT_EQ(next(), second.get());
  expect_cancelled(*second);
  second.reset();  // its owner may be destroyed, whatever the transport still does
  EXPECT_EQ(queue_->finished({}), nullptr);
  gate_->open();
  const std::set<Fetch*> came{next(), next()};
  EXPECT_EQ(came, (std::set<Fetch*>{first.get(), third.get()}));
  EXPECT_EQ(text_of(*first->bytes), "content of first");
  EXPECT_EQ(text_of(*third->bytes), "content of third");
}

TEST_P(FetchControl, WhatHasNotBegunIsCancelledToo) {
  std::vector<std::unique_ptr<Fetch>> fetches;
  for (int i = 0; i < 150; ++i) fetches.push_back(start(std::to_string(i)));  // more than the number of threads
  for (const auto& fetch : fetches) queue_->cancel(*fetch);
  std::set<Fetch*> came;
  for (int i = 0; i < 150; ++i) came.insert(next());
  EXPECT_EQ(came.size(), 150u);
  for (const auto& fetch : fetches) expect_cancelled(*fetch);
  fetches.clear();
  gate_->open();
  const auto last = start("last");
  ASSERT_EQ(next(), last.get());
  EXPECT_EQ(text_of(*last->bytes), "content of last");
}

TEST_P(FetchControl, WhatWasGivenIsNotCancelledAndMayBeStartedAgain) {
  gate_->open();
  const auto fetch = start("object");
  ASSERT_EQ(next(), fetch.get());
  queue_->cancel(*fetch);
  EXPECT_EQ(queue_->finished({}), nullptr);
  EXPECT_EQ(text_of(*fetch->bytes), "content of object");
  queue_->start(*fetch);
  ASSERT_EQ(next(), fetch.get());
  EXPECT_EQ(text_of(*fetch->bytes), "content of object");
}

TEST_P(FetchControl, WhatIsTooLateSaysSoWithItsNameAndItsTime) {
  const auto late = start("late", Clock::now() + 20ms), past = start("past", Clock::now() - 1h);
  const auto other = start("other"), in_time = start("in_time", Clock::now() + 1h);
  for (const Fetch* expected : {past.get(), late.get()}) {
    ASSERT_EQ(next(), expected);
    ASSERT_FALSE(expected->bytes);
    const Error& error = expected->bytes.error();
    EXPECT_EQ(error.code, ErrorCode::kStorage);
    EXPECT_EQ(error.system_errno, ETIMEDOUT);
    EXPECT_EQ(error.where.shard, expected->piece.path);
    EXPECT_NE(error.what.find(" ms"), std::string::npos);
    EXPECT_EQ(expected->buffer.capacity(), 0u);
  }
  EXPECT_NE(past->bytes.error().what.find("within 0 ms"), std::string::npos);
  gate_->open();
  const std::set<Fetch*> came{next(), next()};
  EXPECT_EQ(came, (std::set<Fetch*>{other.get(), in_time.get()}));
  EXPECT_EQ(text_of(*in_time->bytes), "content of in_time");
  EXPECT_EQ(queue_->finished({}), nullptr) << "the late result arrived and is dropped";
}

TEST_P(FetchControl, WhatIsCancelledHasNoDeadlineAnyMore) {
  const auto late = start("late", Clock::now() + 5ms);
  queue_->cancel(*late);
  ASSERT_EQ(next(), late.get());
  expect_cancelled(*late);
  EXPECT_EQ(queue_->finished(Clock::now() + 20ms), nullptr) << "its deadline went with it";
  std::jthread waker([this] { queue_->wake(); });
  const auto other = start("other", Clock::now() + 100s);  // which finished() looks for before its own time
  EXPECT_EQ(queue_->finished(Clock::now() + 200s), nullptr) << "wake() works while a read is in flight";
}

TEST_P(FetchControl, WhatCameInTimeHasNoDeadlineAnyMore) {
  gate_->open();
  std::unique_ptr<Fetch> fetch;
  do {  // until it comes in time, however busy the machine is
    fetch = start("object", Clock::now() + 50ms);
    ASSERT_EQ(next(), fetch.get());
  } while (!fetch->bytes);
  const auto deadline = fetch->deadline;
  const auto other = start("other");
  ASSERT_EQ(next(), other.get());
  EXPECT_EQ(queue_->finished(deadline + 5ms), nullptr);
  EXPECT_EQ(text_of(*fetch->bytes), "content of object");
  EXPECT_EQ(text_of(*other->bytes), "content of other");
}

// The owner's memory is freed too, so sanitizers detect later writes to it.
TEST_P(FetchControl, AQueueThatGoesWaitsForNothing) {
  std::vector<std::unique_ptr<Fetch>> fetches;
  for (int i = 0; i < 20; ++i) fetches.push_back(start(std::to_string(i)));
  std::this_thread::sleep_for(5ms);  // threads may or may not have begun by now
  queue_.reset();
  fetches.clear();
  EXPECT_EQ(orphaned_buffers(), 1u) << "what may still be written to is kept";
  gate_->open();
  expect_nothing_left();
}

TEST_P(FetchControl, AChildAfterForkLeavesItsParentsReadsAlone) {
  const auto fetch = start("object");
  queue_.reset();
  ASSERT_EQ(orphaned_buffers(), 1u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(orphaned_buffers() == 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child has no read in flight";
  EXPECT_EQ(orphaned_buffers(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Queues, FetchControl, testing::Values(QueueKind::kBest, QueueKind::kThreads),
                         [](const auto& test) {
                           return std::string(test.param == QueueKind::kBest ? "best" : "threads");
                         });

}  // namespace
}  // namespace feedline::storage
