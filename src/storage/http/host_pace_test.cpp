// SPDX-License-Identifier: Apache-2.0
#include "storage/http/host_pace.h"

#include <gtest/gtest.h>

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

TEST(SpeedEstimate, FollowsWhatIsSeen) {
  SpeedEstimate estimate;
  EXPECT_EQ(estimate.speed().latency_s, 0);
  EXPECT_EQ(estimate.speed().bytes_per_s, 0);
  estimate.add(0.05, 1'000'000, 0.01);
  EXPECT_DOUBLE_EQ(estimate.speed().latency_s, 0.05);
  EXPECT_DOUBLE_EQ(estimate.speed().bytes_per_s, 1e8);
  for (int i = 0; i < 60; ++i) estimate.add(0.2, 1'000'000, 0.1);
  EXPECT_NEAR(estimate.speed().latency_s, 0.2, 0.001);
  EXPECT_NEAR(estimate.speed().bytes_per_s, 1e7, 1e5);
  estimate.add(0.2, 100, 1e-9);
  EXPECT_NEAR(estimate.speed().bytes_per_s, 1e7, 1e5) << "a short body says nothing of the bandwidth";
  estimate.add(0.2, 1 << 20, 0);
  EXPECT_LT(estimate.speed().bytes_per_s, 1e9);
}

// Returns how many requests a caller makes in `span` if it checks for permission at intervals of `step`.
int made_in(RequestPace& pace, RequestPace::Clock::time_point begin, RequestPace::Clock::duration span,
            RequestPace::Clock::duration step) {
  int made = 0;
  for (auto now = begin; now < begin + span; now += step)
    for (; pace.next() <= now; ++made) pace.made(now);
  return made;
}

TEST(RequestPace, NoMoreThanSoManyASecond) {
  const auto begin = RequestPace::Clock::time_point{} + 1000s;
  for (const auto step : {100us, 5000us}) {
    RequestPace pace(200);
    const int made = made_in(pace, begin, 1s, step);
    EXPECT_GE(made, 199);
    EXPECT_LE(made, 203) << "1 + 200 * 1.01";
    EXPECT_LE(made_in(pace, begin + 100s, 1s, step), 203) << "what was not asked for is not saved up";
  }
  RequestPace slow(1);
  EXPECT_LE(made_in(slow, begin, 10s, 1000us), 11);
}

TEST(RequestPace, WithoutALimitThereIsNone) {
  RequestPace pace(0);
  const auto now = RequestPace::Clock::time_point{} + 1000s;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_LE(pace.next(), now);
    pace.made(now);
  }
}

TEST(HedgePolicy, TheSlowestHundredthIsLate) {
  HedgePolicy policy;
  for (int i = 0; i < 63; ++i) policy.answered(0.01);
  EXPECT_FALSE(policy.late_after_s()) << "too few";
  for (int i = 63; i < 512; ++i) policy.answered(i % 100 == 0 ? 5.0 : 0.01);
  ASSERT_TRUE(policy.late_after_s());
  EXPECT_DOUBLE_EQ(*policy.late_after_s(), 0.01);
  for (int i = 0; i < 512; ++i) policy.answered(i % 50 == 0 ? 5.0 : 0.02);
  EXPECT_DOUBLE_EQ(*policy.late_after_s(), 5.0) << "where two of a hundred are slow, that is no exception";
  for (int i = 0; i < 512; ++i) policy.answered(0.03);
  EXPECT_DOUBLE_EQ(*policy.late_after_s(), 0.03) << "what was long ago does not count";
}

TEST(HedgePolicy, ThreeOfAHundredMayBeMade) {
  HedgePolicy policy;
  EXPECT_FALSE(policy.may_spend());
  int made = 0;
  for (int i = 0; i < 10'000; ++i) {
    policy.began();
    made += policy.may_spend() ? 1 : 0;
  }
  EXPECT_GE(made, 299);
  EXPECT_LE(made, 300);
  for (int i = 0; i < 10'000; ++i) policy.began();
  for (made = 0; policy.may_spend();) ++made;
  EXPECT_EQ(made, 4) << "not all at once that were not made before";
}

}  // namespace
}  // namespace feedline::storage
