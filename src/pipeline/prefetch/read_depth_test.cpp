// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/read_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

namespace feedline::pipeline {
namespace {

constexpr double kMs = 1e6;

// Simulates storage that completes `at_once` reads in parallel, each in `latency_ms`, and threads that use a sample
// every `interval_ms`. Returns the depth after `seconds`, and whether the threads were still waiting.
struct Simulated {
  std::uint64_t depth;
  double rate_share;  // of the threads' own rate
};
Simulated run(ReadDepth& depth, double latency_ms, double interval_ms, double at_once, double seconds) {
  static double now_ns = 1;
  double last_rate = 0;
  for (const double end = now_ns + seconds * 1e9; now_ns < end;) {
    const auto reads = static_cast<double>(depth.reads());
    const double rate = std::min({1 / interval_ms, reads / latency_ms, at_once / latency_ms});  // per ms
    const double latency =
        std::max(latency_ms, reads > rate * latency_ms && rate >= at_once / latency_ms ? reads / rate : 0);
    now_ns += kMs / rate;
    depth.completed(static_cast<std::uint64_t>(latency * kMs));
    depth.taken(static_cast<std::uint64_t>(now_ns), rate < 1 / interval_ms);
    last_rate = rate;
  }
  return {depth.reads(), last_rate * interval_ms};
}

TEST(ReadDepth, ReachesWhatLittlesLawAsksFor) {
  ReadDepth depth(4, 256);
  const Simulated result = run(depth, 5, 0.25, 1000, 2);  // 20 reads in flight sustain it
  EXPECT_GE(result.depth, 20u);
  EXPECT_LE(result.depth, 45u);
  EXPECT_GT(result.rate_share, 0.99);
}

TEST(ReadDepth, StaysSmallWhereFewReadsDo) {
  ReadDepth depth(4, 256);
  EXPECT_EQ(run(depth, 0.2, 1, 1000, 1).depth, 4u);
}

TEST(ReadDepth, DoesNotFloodAStorageAtItsLimit) {
  ReadDepth depth(4, 100'000);
  const Simulated result = run(depth, 5, 0.1, 8, 3);  // 50 would be needed; the storage supports 8
  EXPECT_GE(result.depth, 8u);
  EXPECT_LE(result.depth, 50u);
}

TEST(ReadDepth, FollowsAStorageThatChanges) {
  ReadDepth depth(4, 256);
  run(depth, 5, 0.25, 1000, 2);
  EXPECT_GT(run(depth, 20, 0.25, 1000, 10).rate_share, 0.99);
  EXPECT_LE(run(depth, 1, 0.25, 1000, 2).depth, 12u);
}

TEST(ReadDepth, NeverLeavesItsBounds) {
  ReadDepth depth(4, 10);
  EXPECT_EQ(run(depth, 50, 0.1, 1000, 3).depth, 10u);
  EXPECT_EQ(ReadDepth(8, 3).reads(), 3u);
}

// Simulates the first samples of an epoch: reads take `latency_ms` and complete at least `between_ms` apart; a thread
// consumes one sample every `interval_ms`, in order. Returns how long the thread waited.
double waited_ms(ReadDepth& depth, double latency_ms, double between_ms, double interval_ms, int samples) {
  struct Read {
    double began, comes;
  };
  std::deque<Read> under_way;
  std::uint64_t ahead = 0;  // read, but not taken
  double now = 0, last = 0, waited = 0;
  const auto begin_more = [&](double at) {
    while (under_way.size() + ahead < depth.reads()) {
      last = std::max(at + latency_ms, last + between_ms);
      under_way.push_back({at, last});
    }
  };
  const auto let_come = [&](double until) {
    while (!under_way.empty() && under_way.front().comes <= until) {
      const Read read = under_way.front();
      under_way.pop_front();
      ++ahead;
      depth.completed(static_cast<std::uint64_t>((read.comes - read.began) * kMs));
      begin_more(read.comes);
    }
  };
  begin_more(0);
  for (int i = 0; i < samples; ++i, now += interval_ms) {
    let_come(now);
    const bool waits = ahead == 0;
    if (waits) {
      waited += under_way.front().comes - now;
      now = under_way.front().comes;
      let_come(now);
    }
    --ahead;
    depth.taken(static_cast<std::uint64_t>(now * kMs) + 1, waits);
    begin_more(now);
  }
  return waited;
}

TEST(ReadDepth, GrowsWithTheAnswersWhereTheFirstRateWouldTakeLong) {
  ReadDepth far(128, 4096, ReadDepth::Start::kWithAnswers), slower(128, 4096);
  // 667 reads in flight sustain it: 128, 256, 512 arrive in the first three latencies
  EXPECT_LT(waited_ms(far, 200, 0.05, 0.3, 6000), 3 * 200);
  EXPECT_GT(waited_ms(slower, 200, 0.05, 0.3, 6000), 4 * 200);
  EXPECT_LE(far.reads(), 4 * 667u);
  // doubled in each latency; the rate of the last two must not reduce it
  ReadDepth quick(128, 4096, ReadDepth::Start::kWithAnswers);
  EXPECT_LT(waited_ms(quick, 200, 0.02, 0.05, 12'000), 5.1 * 200);
}

TEST(ReadDepth, GrowsNoFurtherWhereTheLinkIsNarrow) {
  ReadDepth narrow(8, 4096, ReadDepth::Start::kWithAnswers);
  waited_ms(narrow, 20, 1, 0.1, 4000);  // 20 in flight saturate it, and it never reaches the thread's rate
  EXPECT_GE(narrow.reads(), 20u);
  EXPECT_LE(narrow.reads(), 4 * 20u + 1);
}

TEST(ReadDepth, GrowsNoMoreOnceNobodyWaits) {
  ReadDepth depth(8, 4096, ReadDepth::Start::kWithAnswers);
  waited_ms(depth, 5, 0.01, 1, 4000);  // 5 sustain it
  EXPECT_LE(depth.reads(), 4 * 5u);
}

}  // namespace
}  // namespace feedline::pipeline
