// SPDX-License-Identifier: Apache-2.0
#include "format/each_shard.h"

#include <gtest/gtest.h>

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

// By whichever thread: the caller's own, or another, where it would end the process.
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

}  // namespace
}  // namespace feedline::format
