// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/block_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>

#include "feedline/error.h"

namespace feedline::format {
namespace {

class Blocks : public testing::Test {
 protected:
  // Returns a number that identifies the block's content and shows which call made it.
  int ask(std::uint64_t offset, std::uint64_t bytes) {
    const auto made = [&](BlockStore*) -> Result<BlockCache::Block> {
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
  EXPECT_FALSE(cache_.get({this, 0}, [](BlockStore*) -> Result<BlockCache::Block> { return config_error("no"); }));
  EXPECT_FALSE(cache_.has({this, 0}));
  EXPECT_EQ(ask(0, 1), 1);
}

TEST_F(Blocks, WhatIsDroppedIsMadeAgain) {
  ask(0, 60);
  cache_.drop({this, 0});
  EXPECT_EQ(cache_.bytes(), 0u);
  EXPECT_EQ(ask(0, 60), 2);
}

// Makes blocks with 10 values and 60 bytes; if a block is stored, 8 of its bytes remain in memory.
class StoredBlocks : public testing::Test {
 protected:
  void read(std::uint64_t offset, int times = 1) {
    const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
      ++made_;
      const auto content = std::make_shared<std::uint64_t>(offset);
      const auto part = std::as_bytes(std::span(content.get(), 1));
      const bool is_stored = store != nullptr && store->add({&part, 1}).has_value();
      return BlockCache::Block{content, is_stored ? 8u : 60u, 10, is_stored};
    };
    for (int i = 0; i < times; ++i)
      EXPECT_EQ(*static_cast<const std::uint64_t*>(cache_.get({this, offset}, make).value().get()), offset);
  }

  std::shared_ptr<BlockStore> store_ = std::make_shared<BlockStore>(1 << 20);
  BlockCache cache_{100, store_};
  int made_ = 0;
};

TEST_F(StoredBlocks, ABlockThatIsReadAtRandomIsMadeAtMostTwice) {
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const std::uint64_t block : {0, 1, 2}) read(block);
  EXPECT_EQ(made_, 5) << "after two blocks are stored, the third fits into memory";
  EXPECT_EQ(store_->bytes(), 2 * sizeof(std::uint64_t));
  EXPECT_EQ(cache_.bytes(), 2 * 8u + 60u);
  EXPECT_TRUE(cache_.has({this, 0}));
  EXPECT_NE(cache_.summary().find("stored in the cache folder"), std::string::npos) << cache_.summary();
}

TEST_F(StoredBlocks, ABlockThatIsReadInOrderIsNotStored) {
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const std::uint64_t block : {0, 1, 2}) read(block, 10);
  EXPECT_EQ(made_, 9);
  EXPECT_EQ(store_->bytes(), 0u);
}

TEST_F(StoredBlocks, BlocksOfRemoteFilesAreStoredWhenTheyAreFirstMade) {
  const auto read_remote = [&](std::uint64_t block) {
    const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
      ++made_;
      const auto part = std::as_bytes(std::span(&block, 1));
      const bool is_stored = store != nullptr && store->add({&part, 1}).has_value();
      return BlockCache::Block{std::make_shared<int>(1), is_stored ? 8u : 60u, 10, is_stored};
    };
    EXPECT_TRUE(cache_.get({this, block}, make, 1, true));
  };
  for (int epoch = 0; epoch < 3; ++epoch)
    for (std::uint64_t block = 0; block < 5; ++block) read_remote(block);
  EXPECT_EQ(made_, 6) << "only the first block was evicted before access was known to be random";
}

TEST_F(Blocks, ABlockThatIsBeingMadeIsExpected) {
  const auto make = [&](BlockStore*) -> Result<BlockCache::Block> {
    EXPECT_TRUE(cache_.is_expected({this, 0}));
    EXPECT_FALSE(cache_.has({this, 0}));
    return BlockCache::Block{std::make_shared<int>(1), 60};
  };
  EXPECT_FALSE(cache_.is_expected({this, 0}));
  EXPECT_TRUE(cache_.get({this, 0}, make));
  EXPECT_TRUE(cache_.is_expected({this, 0}));
}

TEST_F(StoredBlocks, ARequestMayReadManyValues) {
  const auto read_half = [&](std::uint64_t offset, std::uint64_t values) {
    const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
      made_ += store != nullptr ? 1 : 0;
      return BlockCache::Block{std::make_shared<int>(1), 60, 10};
    };
    EXPECT_TRUE(cache_.get({this, offset}, make, values));
  };
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const std::uint64_t block : {0, 1, 2}) {
      read_half(block, 2);
      read_half(block, 3);
    }
  EXPECT_EQ(made_, 0) << "half of the values were read, which is not random access";
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const std::uint64_t block : {0, 1, 2}) read_half(block, 4);
  EXPECT_GT(made_, 0);
}

TEST_F(Blocks, ThreeQuartersOfTheRoomCanBeClaimed) {
  EXPECT_TRUE(cache_.claim(30));
  EXPECT_FALSE(cache_.claim(46));
  EXPECT_TRUE(cache_.claim(45));
  EXPECT_FALSE(cache_.claim(1));
  EXPECT_EQ(ask(0, 60), 1);
  EXPECT_EQ(ask(0, 60), 2) << "the cache has 25 bytes left";
  EXPECT_EQ(ask(1, 20), 3);
  EXPECT_EQ(ask(2, 11), 4);
  EXPECT_FALSE(cache_.has({this, 1}));
}

TEST_F(Blocks, AClaimReplacesEarlierClaims) {
  EXPECT_TRUE(cache_.claim(70));
  EXPECT_FALSE(cache_.claim(76, 70));
  EXPECT_FALSE(cache_.claim(75, 69));
  EXPECT_TRUE(cache_.claim(75, 70));
  EXPECT_TRUE(cache_.claim(10, 75));
  EXPECT_TRUE(cache_.claim(65));
}

TEST_F(Blocks, TheBlocksOfATableAreDropped) {
  ask(0, 60);
  ask(1, 10);
  cache_.drop_all(&cache_);
  EXPECT_EQ(cache_.bytes(), 70u);
  cache_.drop_all(this);
  EXPECT_EQ(cache_.bytes(), 0u);
  EXPECT_EQ(ask(1, 10), 3);
}

TEST_F(StoredBlocks, ABlockIsStoredOnceEvenIfTheRestOfItExceedsTheCache) {
  int stored = 0;
  for (int i = 0; i < 6; ++i) {
    const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
      stored += store != nullptr ? 1 : 0;
      return BlockCache::Block{std::make_shared<int>(7), 101, 10, store != nullptr};
    };
    EXPECT_EQ(*static_cast<const int*>(cache_.get({this, 0}, make).value().get()), 7);
  }
  EXPECT_EQ(stored, 1);
}

TEST_F(StoredBlocks, BlocksStayInMemoryIfTheStoreIsFull) {
  store_ = std::make_shared<BlockStore>(0);
  BlockCache cache(100, store_);
  int stored = 0;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (std::uint64_t block = 0; block < 3; ++block) {
      const auto make = [&](BlockStore* store) -> Result<BlockCache::Block> {
        const std::span<const std::byte> part = std::as_bytes(std::span(&block, 1));
        stored += store != nullptr && store->add({&part, 1}) ? 1 : 0;
        return BlockCache::Block{std::make_shared<std::uint64_t>(block), 60, 10};
      };
      EXPECT_EQ(*static_cast<const std::uint64_t*>(cache.get({this, block}, make).value().get()), block);
    }
  EXPECT_EQ(stored, 0);
  EXPECT_EQ(cache.made(), 9u);
  EXPECT_NE(cache.summary().find("cannot be stored: "), std::string::npos) << cache.summary();
}

}  // namespace
}  // namespace feedline::format
