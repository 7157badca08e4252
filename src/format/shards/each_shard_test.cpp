// SPDX-License-Identifier: Apache-2.0
#include "format/shards/each_shard.h"

#include <gtest/gtest.h>

#include <latch>
#include <new>

#include "base/check.h"

namespace feedline::format {
namespace {

TEST(EachShard, GivesAllInOrder) {
  const auto made = each_shard<std::size_t>(100, [](std::size_t i) -> Result<std::size_t> { return i * i; });
  ASSERT_TRUE(made);
  ASSERT_EQ(made->size(), 100u);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ((*made)[i], i * i);
  EXPECT_TRUE(each_shard<int>(0, [](std::size_t) -> Result<int> { return 0; })->empty());
}

// An exception on the caller's thread or any other thread must not end the process.
TEST(EachShard, WhatMakeThrowsIsTheErrorOfTheLowest) {
  for (int again = 0; again < 20; ++again) {
    const auto made = each_shard<int>(64, [](std::size_t i) -> Result<int> {
      if (i == 7) throw std::bad_alloc();
      if (i > 7) FEEDLINE_CHECK(i < 7);
      return 1;
    });
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().what, "out of memory");
  }
  const auto all = each_shard<int>(64, [](std::size_t) -> Result<int> {
    FEEDLINE_CHECK(false);
    return 1;
  });
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::kInternal);
}

TEST(EachShard, AnErrorStaysWhatItIs) {
  const auto made = each_shard<int>(9, [](std::size_t i) -> Result<int> {
    if (i == 5) return config_error("five");
    return 1;
  });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().what, "five");
}

// Each call waits for all other calls at a barrier, so that this test would hang with fewer threads.
TEST(EachShard, ThoseBehindANetworkAreLookedForSideBySide) {
  const std::size_t count = shards_side_by_side(true);
  EXPECT_GE(count, 32u);
  std::latch all(static_cast<std::ptrdiff_t>(count));
  const auto made = each_shard<int>(
      count,
      [&](std::size_t) -> Result<int> {
        all.arrive_and_wait();
        return 1;
      },
      count);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->size(), count);
}

// 8 MiB per scan, from an eighth of the memory available to a rank
TEST(EachShard, ScansAreAsManyAsThereIsMemoryFor) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_EQ(scans_at_once(64 * kGiB, 1), 16);
  EXPECT_EQ(scans_at_once(kGiB, 1), 16);
  EXPECT_EQ(scans_at_once(kGiB, 4), 4);
  EXPECT_EQ(scans_at_once(kGiB / 4, 2), 2);
  EXPECT_EQ(scans_at_once(kGiB / 8, 8), 1) << "always one, even with little memory";
}

}  // namespace
}  // namespace feedline::format
