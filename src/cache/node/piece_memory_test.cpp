// SPDX-License-Identifier: Apache-2.0
#include "cache/node/piece_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "cache/node/stop.h"

namespace feedline::cache {
namespace {

std::shared_ptr<PieceMemory> memory_of(std::uint64_t bytes) { return std::make_shared<PieceMemory>(bytes); }

// Waits until another thread waits for room.
void until_waited_for(const PieceMemory& memory) {
  while (!memory.is_waited_for()) std::this_thread::yield();
}

TEST(PieceMemory, IsWhatLoadersHaveSetAsideTogether) {
  const auto memory = memory_of(100);
  EXPECT_TRUE(memory->try_for(100));
  EXPECT_FALSE(memory->try_for(101));
  {
    const auto first = memory->set_aside(30);
    EXPECT_FALSE(memory->try_for(31));
    const auto second = memory->set_aside(10);
    const auto held = memory->try_for(25);
    ASSERT_TRUE(held);
    EXPECT_FALSE(memory->try_for(16));
    EXPECT_TRUE(memory->try_for(15));
  }
  EXPECT_TRUE(memory->try_for(100)) << "the loaders are gone, and what they held";
  EXPECT_EQ(memory->most_held(), 100u);
}

TEST(PieceMemory, PiecesFitIt) {
  const auto memory = memory_of(std::uint64_t{1} << 30);
  EXPECT_EQ(memory->piece_bytes(), kPieceBytes);
  {
    const auto share = memory->set_aside(1 << 20);
    EXPECT_EQ(memory->piece_bytes(), 1u << 18);
  }
  const auto share = memory->set_aside(1);
  EXPECT_EQ(memory->piece_bytes(), kLeastPieceBytes);
}

TEST(PieceMemory, OnePieceIsFetchedHoweverLittleThereIs) {
  const auto memory = memory_of(1);
  const auto held = memory->wait_for(1000, nullptr);
  ASSERT_TRUE(held);
  EXPECT_FALSE(memory->try_for(1));
}

TEST(PieceMemory, WhoWaitsComesBeforeThoseWhoHaveSome) {
  const auto memory = memory_of(40);
  auto held = memory->wait_for(10, nullptr);
  auto more = memory->try_for(10);
  ASSERT_TRUE(held && more);
  std::thread other([&] { EXPECT_TRUE(memory->wait_for(30, nullptr)); });
  until_waited_for(*memory);
  EXPECT_FALSE(memory->try_for(10)) << "there is room for it, but another caller waits for more";
  more.reset();
  other.join();
  EXPECT_LE(memory->most_held(), 40u);
}

TEST(PieceMemory, AWaitIsEndedByStop) {
  const auto memory = memory_of(10);
  const auto held = memory->wait_for(10, nullptr);
  Stop stop;
  std::thread other([&] { EXPECT_FALSE(memory->wait_for(10, &stop)); });
  until_waited_for(*memory);
  stop.stop();
  other.join();
  EXPECT_FALSE(memory->wait_for(10, &stop)) << "and stays stopped";
}

TEST(PieceMemory, ManyFetchesNeverHoldMoreThanThereIs) {
  const auto memory = memory_of(4 * 100);
  std::atomic<int> pieces = 0;
  std::vector<std::thread> fetches;
  for (int i = 0; i < 8; ++i)
    fetches.emplace_back([&] {
      for (int object = 0; object < 200; ++object) {
        std::vector<PieceMemory::Room> rooms;
        rooms.push_back(std::move(*memory->wait_for(100, nullptr)));
        while (auto room = memory->try_for(100)) rooms.push_back(std::move(*room));
        pieces += static_cast<int>(rooms.size());
      }
    });
  for (auto& fetch : fetches) fetch.join();
  EXPECT_GE(pieces, 1600);
  EXPECT_LE(memory->most_held(), 400u);
}

}  // namespace
}  // namespace feedline::cache
