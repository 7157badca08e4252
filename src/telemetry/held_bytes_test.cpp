// SPDX-License-Identifier: Apache-2.0
#include "telemetry/held_bytes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace feedline::telemetry {
namespace {

TEST(HeldBytes, SumsItsPartsAndKeepsTheMost) {
  HeldBytes whole;
  HeldPart batches(whole);
  {
    HeldPart ahead(whole);
    batches.set(100);
    ahead += 50;
    ahead -= 20;
    EXPECT_EQ(ahead, 30u);
    EXPECT_EQ(whole.look().now, 130u);
    batches.set(40);
    ahead += 10;
    EXPECT_EQ(whole.look().now, 80u);
  }
  EXPECT_EQ(whole.look().now, 40u);
  EXPECT_EQ(whole.look().peak, 150u);
}

// The sum and the maximum are two variables: a concurrent reader must never see a sum above the maximum, and the
// maximum must never decrease.
TEST(HeldBytes, NoLookFindsMoreThanTheMost) {
  HeldBytes whole;
  std::atomic<int> running = 2;
  std::vector<std::thread> holders;
  for (int i = 0; i < 2; ++i) {
    holders.emplace_back([&] {
      HeldPart part(whole);
      for (std::uint64_t bytes = 1; bytes < 200'000; ++bytes) part.set(bytes % 3 == 0 ? 0 : bytes);
      --running;
    });
  }
  std::uint64_t peak = 0;
  while (running > 0) {
    const HeldBytes::Look look = whole.look();
    ASSERT_LE(look.now, look.peak);
    ASSERT_GE(look.peak, peak);
    peak = look.peak;
  }
  for (auto& holder : holders) holder.join();
  EXPECT_EQ(whole.look().now, 0u);
  EXPECT_GE(whole.look().peak, 199'999u);
  EXPECT_LE(whole.look().peak, 2 * 199'999u);
}

}  // namespace
}  // namespace feedline::telemetry
