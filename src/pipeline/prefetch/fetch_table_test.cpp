// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace feedline::pipeline {
namespace {

FetchTable::Entry& add(FetchTable& table, std::uint64_t sample, std::uint64_t number) {
  FetchTable::Entries made(1);
  made.front().sample = sample;
  made.front().number = number;
  return table.add(made);
}

TEST(FetchTable, FindsTheOldestOfASampleThatIsWanted) {
  FetchTable table(4);
  EXPECT_EQ(table.find(7), nullptr);
  EXPECT_EQ(table.oldest_wanted(), nullptr);
  FetchTable::Entry &first = add(table, 7, 0), &second = add(table, 8, 1), &third = add(table, 7, 2);
  EXPECT_EQ(table.find(7), &first);
  EXPECT_EQ(table.oldest_wanted(), &first);
  table.claim(first);
  EXPECT_EQ(table.find(7), &third);
  EXPECT_EQ(table.oldest_wanted(), &second);
  FetchTable::Entries spare;
  table.move_to(spare, first);
  EXPECT_EQ(table.size(), 2u);
  spare.front().sample = 9;
  spare.front().number = 3;
  EXPECT_EQ(&table.add(spare), &first) << "spare entries are reused";
  EXPECT_EQ(table.find(9), &first);
  table.claim(second);
  table.claim(third);
  EXPECT_EQ(table.oldest_wanted(), &first);
  EXPECT_EQ(table.find(7), nullptr);
}

// Compares FetchTable with a linear list.
TEST(FetchTable, IsAListThatIsLookedThrough) {
  std::mt19937 random(5);
  FetchTable table(16);  // exceeding it makes lookups slower, not wrong
  FetchTable::Entries spare;
  std::vector<FetchTable::Entry*> wanted;
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    wanted.push_back(&add(table, random() % 40, number));
    while (wanted.size() > 60 || (!wanted.empty() && random() % 2 == 0)) {
      const std::uint64_t sample = random() % 40;
      const auto expected =
          std::ranges::find_if(wanted, [&](const FetchTable::Entry* entry) { return entry->sample == sample; });
      FetchTable::Entry* found = table.find(sample);
      ASSERT_EQ(found, expected == wanted.end() ? nullptr : *expected);
      ASSERT_EQ(table.oldest_wanted(), wanted.front());
      if (found == nullptr) continue;
      table.claim(*found);
      table.move_to(spare, *found);
      wanted.erase(expected);
    }
    ASSERT_EQ(table.size(), wanted.size());
    spare.clear();
  }
}

TEST(FetchWaiter, IsToldBeforeOrWhileItWaits) {
  FetchWaiter waiter;
  waiter.tell();
  waiter.wait();
  std::thread other([&] { waiter.tell(); });
  waiter.wait();
  other.join();
}

}  // namespace
}  // namespace feedline::pipeline
