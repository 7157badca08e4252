// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/row_tickets.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace feedline::pipeline {
namespace {

TEST(RowTickets, GoOutInRunsUpToTheEnd) {
  RowTickets tickets;
  tickets.open(10);
  for (const RowRun& expected : {RowRun{0, 4}, {4, 4}, {8, 2}}) {
    const RowRun run = tickets.take(4);
    EXPECT_EQ(run.first, expected.first);
    EXPECT_EQ(run.rows, expected.rows);
  }
  EXPECT_EQ(tickets.take(4).rows, 0u);
  EXPECT_FALSE(tickets.finish(9));
  EXPECT_FALSE(tickets.finish(0)) << "of a thread that found nothing";
  EXPECT_EQ(tickets.missing(), 1u);
  EXPECT_TRUE(tickets.finish(1));
  tickets.reopen_one();
  EXPECT_EQ(tickets.take(1).rows, 0u) << "a refill's thread already has its ticket";
  EXPECT_TRUE(tickets.finish(1));
}

TEST(RowTickets, PausedOrClosedNobodyGetsOne) {
  RowTickets tickets;
  tickets.open(3);
  tickets.take(1);
  const auto first = tickets.pause();
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(tickets.take(1).rows, 0u);
  EXPECT_TRUE(tickets.take(1).is_paused) << "there will be some";
  EXPECT_TRUE(tickets.is_paused());
  EXPECT_EQ(tickets.pause(), std::nullopt) << "one at a time";
  tickets.resume(*first);
  EXPECT_FALSE(tickets.is_paused());
  EXPECT_EQ(tickets.take(1).first, 1u);
  EXPECT_EQ(tickets.pause(), 2u);
  tickets.close();
  tickets.resume(2);
  EXPECT_EQ(tickets.take(1).rows, 0u) << "a closed one stays closed";
  EXPECT_FALSE(tickets.take(1).is_paused);
  EXPECT_EQ(tickets.pause(), std::nullopt);
  EXPECT_EQ(tickets.missing(), 3u) << "an abandoned batch is never complete";
}

TEST(RowTickets, AnnouncedNobodyGetsOneUntilTheyAreResumed) {
  RowTickets tickets;
  tickets.announce(2);
  EXPECT_EQ(tickets.missing(), 2u);
  EXPECT_TRUE(tickets.take(1).is_paused);
  tickets.resume(0);
  EXPECT_EQ(tickets.take(5).rows, 2u);
  EXPECT_FALSE(tickets.take(1).is_paused) << "all are taken";
  EXPECT_EQ(tickets.pause(), std::nullopt) << "there is none to keep";
}

// Each row is taken by one thread, one thread is the last, and no row is taken during a pause.
TEST(RowTickets, ThreadsShareTheRows) {
  constexpr std::uint64_t kRows = 400'000;
  for (const std::uint64_t grain : {1, 7}) {
    RowTickets tickets;
    tickets.open(kRows);
    std::vector<int> taken(kRows);
    std::mutex mutex;  // replaces the pipeline's lock
    std::atomic<int> last = 0, working = 4;
    const auto work = [&] {
      std::uint64_t filled = 0;
      while (true) {
        RowRun run = tickets.take(grain);
        if (run.rows == 0) {  // may only be paused
          const std::lock_guard lock(mutex);
          run = tickets.take(grain);
        }
        if (run.rows == 0) break;
        for (std::uint64_t row = run.first; row < run.first + run.rows; ++row) ++taken[row];
        filled += run.rows;
      }
      last += tickets.finish(filled) ? 1 : 0;
      --working;
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
    while (working > 0) {
      const std::lock_guard lock(mutex);
      const auto first = tickets.pause();
      std::this_thread::yield();
      if (!first) continue;
      EXPECT_EQ(taken[*first], 0) << "taken during a pause";
      taken[*first] = 0;  // simulates moving pages: a write that the next owner must see
      tickets.resume(*first);
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(last, 1);
    EXPECT_EQ(std::ranges::count(taken, 1), static_cast<std::ptrdiff_t>(kRows));
  }
}

}  // namespace
}  // namespace feedline::pipeline
