// SPDX-License-Identifier: Apache-2.0
#include "pipeline/read_depth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace feedline::pipeline {
namespace {

constexpr double kMs = 1e6;

// A storage and threads in made-up time: `at_once` reads of `latency_ms` each, threads that use a sample every
// `interval_ms`. Gives the depth after `seconds`, and whether the threads waited at its end.
struct Result {
  std::uint64_t depth;
  double rate_share;  // of the threads' own rate
};
Result run(ReadDepth& depth, double latency_ms, double interval_ms, double at_once, double seconds) {
  static double now_ns = 1;
  double last_rate = 0;
  for (const double end = now_ns + seconds * 1e9; now_ns < end;) {
    const auto reads = static_cast<double>(depth.reads());
    const double rate = std::min({1 / interval_ms, reads / latency_ms, at_once / latency_ms});  // per ms
    const double latency =
        std::max(latency_ms, reads > rate * latency_ms && rate >= at_once / latency_ms ? reads / rate : 0);
    now_ns += kMs / rate;
    depth.completed(static_cast<std::uint64_t>(latency * kMs));
    depth.taken(static_cast<std::uint64_t>(now_ns));
    last_rate = rate;
  }
  return {depth.reads(), last_rate * interval_ms};
}

TEST(ReadDepth, ReachesWhatLittlesLawAsksFor) {
  ReadDepth depth(4, 256);
  const Result result = run(depth, 5, 0.25, 1000, 2);  // 20 reads under way carry it
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
  const Result result = run(depth, 5, 0.1, 8, 3);  // 50 would be needed; the storage works on 8
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

}  // namespace
}  // namespace feedline::pipeline
