// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stage_counters.h"

#include <gtest/gtest.h>

#include <thread>

namespace feedline::telemetry {
namespace {

TEST(StageCounters, SumsWhatWasAdded) {
  StageCounters counters;
  counters.add_item(999, 10);             // under a microsecond: bucket 0
  counters.add_item(3'000, 20);           // 3 us: bucket 1
  counters.add_item(1'000'000, 30);       // 1000 us: bucket 9
  counters.add_item(100'000'000'000, 0);  // 100 s: last bucket
  counters.add_blocked(5);
  counters.add_starved(7);
  StageTotals totals;
  counters.add_to(totals);
  counters.add_to(totals);  // adds to the totals
  EXPECT_EQ(totals.items, 8u);
  EXPECT_EQ(totals.bytes, 120u);
  EXPECT_EQ(totals.blocked_ns, 10u);
  EXPECT_EQ(totals.starved_ns, 14u);
  EXPECT_EQ(totals.latency[0], 2u);
  EXPECT_EQ(totals.latency[1], 2u);
  EXPECT_EQ(totals.latency[9], 2u);
  EXPECT_EQ(totals.latency[kLatencyBuckets - 1], 2u);
}

TEST(StageCounters, ItemsDoneAtOnceCountEachWithItsPartOfTheTime) {
  StageCounters counters;
  counters.add_items(50, 150'000, 1000);  // 3 us each: bucket 1
  counters.add_busy(7);                   // for an item not counted here
  StageTotals totals;
  counters.add_to(totals);
  EXPECT_EQ(totals.items, 50u);
  EXPECT_EQ(totals.bytes, 1000u);
  EXPECT_EQ(totals.busy_ns, 150'007u);
  EXPECT_EQ(totals.latency[1], 50u);
}

// With one writer and one reader, the reader never sees a count decrease.
TEST(StageCounters, MayBeReadWhileItsThreadWrites) {
  StageCounters counters;
  std::thread writer([&] {
    for (int i = 0; i < 100000; ++i) counters.add_item(1000, 1);
  });
  std::uint64_t last = 0;
  while (last < 100000) {
    StageTotals totals;
    counters.add_to(totals);
    ASSERT_GE(totals.items, last);
    last = totals.items;
  }
  writer.join();
}

}  // namespace
}  // namespace feedline::telemetry
