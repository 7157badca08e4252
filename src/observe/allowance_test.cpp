// SPDX-License-Identifier: Apache-2.0
#include "observe/allowance.h"

#include <gtest/gtest.h>

namespace feedline::observe {
namespace {

TEST(Allowance, GrowsWithTheTimeAndIsOwedForLongEnough) {
  Allowance allowance{.began_ns = 1000, .free_ns = 50, .share = 100};
  EXPECT_EQ(allowance.left_ns(1000), 50u);
  EXPECT_EQ(allowance.left_ns(11'000), 150u);
  EXPECT_EQ(allowance.owed_ns(1000), 0u);
  allowance.spent_ns = 80;
  EXPECT_EQ(allowance.left_ns(1000), 0u);
  EXPECT_EQ(allowance.owed_ns(1000), 3000u);
  EXPECT_EQ(allowance.owed_ns(1000 + 3000), 0u);
}

TEST(Allowance, HoldsForWhoeverWaitsForWhatHeOwes) {
  Allowance allowance{.free_ns = 4'000'000, .share = 400};
  std::uint64_t now = 0;
  const std::uint64_t costs[] = {3'900'000, 700'000, 90'000, 5'000'000, 20'000};
  for (int i = 0; i < 1000; ++i) {
    allowance.spent_ns += costs[i % 5];
    now += std::max<std::uint64_t>(100'000'000, allowance.owed_ns(now));
  }
  EXPECT_LE(allowance.spent_ns, 4'000'000 + now / 400);
}

TEST(Allowance, KeepsNobodyWaitingForMoreThanAMinute) {
  const Allowance allowance{.share = 400, .spent_ns = ~std::uint64_t{0} / 2};
  EXPECT_EQ(allowance.owed_ns(0), Allowance::kLongestWaitNs);
}

}  // namespace
}  // namespace feedline::observe
