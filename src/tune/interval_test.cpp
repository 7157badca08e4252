// SPDX-License-Identifier: Apache-2.0
#include "tune/interval.h"

#include <gtest/gtest.h>

namespace feedline::tune {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
using Taken = IntervalMeter::Taken;

TEST(IntervalMeter, AnIntervalHasFourBatchesAndAFifthOfASecond) {
  IntervalMeter meter;
  std::uint64_t now = 5 * kMs;
  EXPECT_EQ(meter.delivered(now, 0), Taken::kBegan);
  for (int i = 1; i < 20; ++i) ASSERT_EQ(meter.delivered(now += 10 * kMs, 2 * kMs), Taken::kGoesOn) << i;
  ASSERT_EQ(meter.delivered(now += 11 * kMs, 2 * kMs), Taken::kFull);
  EXPECT_NEAR(meter.interval().seconds, 0.201, 1e-9);
  EXPECT_EQ(meter.interval().batches, 20);
  EXPECT_NEAR(meter.interval().waited_s, 0.040, 1e-9);
}

TEST(IntervalMeter, ASlowLoopsIntervalsAreLonger) {
  IntervalMeter meter;
  std::uint64_t now = 5 * kMs;
  EXPECT_EQ(meter.delivered(now, 0), Taken::kBegan);
  for (int i = 1; i < 4; ++i) ASSERT_EQ(meter.delivered(now += 900 * kMs, 0), Taken::kGoesOn) << i;
  ASSERT_EQ(meter.delivered(now += 900 * kMs, 0), Taken::kFull);
  EXPECT_NEAR(meter.interval().seconds, 3.6, 1e-9);
  EXPECT_NEAR(meter.step_s(), 0.9, 1e-9);
}

TEST(IntervalMeter, LeavesPausesAndBordersOut) {
  IntervalMeter meter;
  std::uint64_t now = kMs;
  meter.delivered(now, 0);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(meter.delivered(now += 15 * kMs, 0), Taken::kGoesOn);
  EXPECT_EQ(meter.delivered(now += 3000 * kMs, 0), Taken::kBegan) << "validation";
  for (int i = 0; i < 10; ++i) ASSERT_EQ(meter.delivered(now += 15 * kMs, 0), Taken::kGoesOn);
  meter.interrupt();
  EXPECT_EQ(meter.delivered(now += 15 * kMs, 0), Taken::kBegan);
}

TEST(IntervalMeter, AWaitIsNoPause) {
  IntervalMeter meter;
  std::uint64_t now = kMs;
  meter.delivered(now, 0);
  for (int i = 0; i < 10; ++i) meter.delivered(now += 5 * kMs, 0);
  EXPECT_EQ(meter.delivered(now += 3000 * kMs, 2995 * kMs), Taken::kFull);
}

TEST(IntervalMeter, ALoopThatPausesAllTheTimeIsMeasuredWithItsPauses) {
  IntervalMeter meter;
  std::uint64_t now = kMs;
  meter.delivered(now, 0);
  int full = 0;
  for (int i = 1; i < 200; ++i)
    if (meter.delivered(now += (i % 10 == 0 ? 100 : 1) * kMs, 0) == Taken::kFull) ++full;
  EXPECT_GT(full, 3);
}

}  // namespace
}  // namespace feedline::tune
