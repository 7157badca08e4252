// SPDX-License-Identifier: Apache-2.0
#include "telemetry/spans.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

namespace feedline::telemetry {
namespace {

class Spans : public testing::Test {
 protected:
  ~Spans() override { stop_spans(); }
};

TEST_F(Spans, AreNotRecordedUntilStarted) {
  start_spans(10);
  stop_spans();
  record_span(Stage::kDecode, 1, 2, 3);
  EXPECT_TRUE(take_spans().spans.empty());
}

TEST_F(Spans, ComeBackAsRecordedOnce) {
  start_spans(10);
  record_span(Stage::kDecode, 100, 250, 7);
  record_span(Stage::kTransform, 250, 300, 8);
  const SpanRecording taken = take_spans();
  ASSERT_EQ(taken.spans.size(), 2u);
  EXPECT_EQ(taken.spans[0].begin_ns, 100u);
  EXPECT_EQ(taken.spans[0].end_ns, 250u);
  EXPECT_EQ(taken.spans[0].item, 7u);
  EXPECT_EQ(taken.spans[0].stage, static_cast<std::uint32_t>(Stage::kDecode));
  EXPECT_EQ(taken.spans[0].thread, static_cast<std::uint32_t>(gettid()));
  EXPECT_EQ(taken.spans[1].item, 8u);
  EXPECT_EQ(taken.dropped, 0u);
  EXPECT_TRUE(take_spans().spans.empty());
}

TEST_F(Spans, KeepTheLatestAndCountTheOthers) {
  start_spans(4);
  for (std::uint64_t i = 0; i < 11; ++i) record_span(Stage::kStorage, i, i + 1, i);
  const SpanRecording taken = take_spans();
  ASSERT_EQ(taken.spans.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(taken.spans[i].item, 7 + i);
  EXPECT_EQ(taken.dropped, 7u);
}

TEST_F(Spans, OfThreadsThatEndedAreKept) {
  start_spans(1000);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (std::uint64_t i = 0; i < 100; ++i) record_span(Stage::kBatch, i, i + 1, 1000 * t + i);
    });
  }
  for (auto& thread : threads) thread.join();
  const SpanRecording taken = take_spans();
  std::set<std::uint64_t> items, numbers;
  for (const Span& span : taken.spans) {
    items.insert(span.item);
    numbers.insert(span.thread);
  }
  EXPECT_EQ(items.size(), 400u);
  EXPECT_EQ(numbers.size(), 4u);
}

// Every span is returned once or counted as dropped, while threads record spans and recordings restart.
TEST_F(Spans, MayBeTakenWhileTheyAreRecorded) {
  constexpr std::uint64_t kEach = 20000;
  start_spans(64);
  std::atomic<int> running = 2;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kEach; ++i) record_span(Stage::kDecode, i, i + 1, i);
      --running;
    });
  }
  std::uint64_t seen = 0;
  const auto take = [&] {
    const SpanRecording taken = take_spans();
    seen += taken.spans.size() + taken.dropped;
  };
  while (running > 0) take();
  for (auto& thread : threads) thread.join();
  take();
  EXPECT_EQ(seen, 2 * kEach);
}

TEST_F(Spans, BeginAgainInAForkedChild) {
  start_spans(10);
  record_span(Stage::kDecode, 1, 2, 3);
  const pid_t child = fork();
  if (child == 0) {
    record_span(Stage::kDecode, 4, 5, 6);  // off in the child
    bool right = take_spans().spans.empty();
    start_spans(10);
    record_span(Stage::kDecode, 7, 8, 9);
    const SpanRecording taken = take_spans();
    right = right && taken.spans.size() == 1 && taken.spans[0].item == 9;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(take_spans().spans.size(), 1u);
}

}  // namespace
}  // namespace feedline::telemetry
