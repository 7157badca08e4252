// SPDX-License-Identifier: Apache-2.0
#include "format/tables/block_cache.h"

#include <gtest/gtest.h>

#include "feedline/error.h"

namespace feedline::format {
namespace {

class Blocks : public testing::Test {
 protected:
  // Returns the number that identifies the block's content: from this call, or from an earlier one that made it.
  int ask(std::uint64_t offset, std::uint64_t bytes) {
    const auto made = [&]() -> Result<BlockCache::Block> {
      return BlockCache::Block{std::make_shared<int>(++made_), bytes};
    };
    return *static_cast<const int*>(cache_.get({this, offset}, made).value().get());
  }

  BlockCache cache_{100};
  int made_ = 0;
};

TEST_F(Blocks, AreMadeOnceWhileThereIsRoom) {
  EXPECT_EQ(ask(0, 60), 1);
  EXPECT_EQ(ask(1, 40), 2);
  EXPECT_EQ(ask(0, 60), 1);
  EXPECT_EQ(cache_.bytes(), 100u);
}

TEST_F(Blocks, TheOneAskedForLongestAgoGoes) {
  ask(0, 40);
  ask(1, 40);
  ask(0, 40);
  ask(2, 40);
  EXPECT_TRUE(cache_.has({this, 0}));
  EXPECT_FALSE(cache_.has({this, 1}));
  EXPECT_EQ(cache_.bytes(), 80u);
}

TEST_F(Blocks, OneThatIsLargerThanAllRoomIsGivenAndThrowsNoneOut) {
  ask(0, 60);
  EXPECT_EQ(ask(1, 101), 2);
  EXPECT_EQ(ask(1, 101), 3) << "it is not kept";
  EXPECT_EQ(ask(0, 60), 1);
  EXPECT_EQ(cache_.bytes(), 60u);
}

TEST_F(Blocks, AnErrorIsTheCallersAndTheNextOneTriesAgain) {
  EXPECT_FALSE(cache_.get({this, 0}, []() -> Result<BlockCache::Block> { return config_error("no"); }));
  EXPECT_FALSE(cache_.has({this, 0}));
  EXPECT_EQ(ask(0, 1), 1);
}

TEST_F(Blocks, WhatIsDroppedIsMadeAnew) {
  ask(0, 60);
  cache_.drop({this, 0});
  EXPECT_EQ(cache_.bytes(), 0u);
  EXPECT_EQ(ask(0, 60), 2);
}

}  // namespace
}  // namespace feedline::format
