// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_stock.h"

#include <gtest/gtest.h>

#include <vector>

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kSlack = 4;
constexpr std::uint64_t kPhoto = 128 << 10;  // assumed size of a sample before any were measured

class FetchStockTest : public testing::Test {
 protected:
  FetchStock::Entry& begin(FetchStock& stock, std::uint64_t sample) {
    if (fresh_.empty()) fresh_.emplace_back().parts.resize(1);
    return stock.begin(sample, fresh_);
  }
  void finish(FetchStock& stock, FetchStock::Entry& entry, std::size_t bytes, bool was_near = false) {
    FetchTable::Part& part = entry.parts.front();
    entry.used = 1;
    part.bytes = std::span<const std::byte>(part.buffer.resize(bytes));
    part.was_near = was_near;
    stock.finish(entry, entry.outcome(), unused_);
  }

  telemetry::HeldBytes held_;
  FetchStock::Entries fresh_, unused_;
};

TEST_F(FetchStockTest, HasRoomForSoManyAndForSoMuch) {
  FetchStock small(kSlack, 3 * kPhoto, 1, false, held_), large(kSlack, 1000 * kPhoto, 1, false, held_);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(small.room(), 2 * kSlack - i);
    begin(small, i);
  }
  EXPECT_EQ(small.room(), 0u) << "no memory is left for a fourth";
  EXPECT_EQ(small.held_bytes(), 3 * kPhoto);
  for (std::uint64_t i = 0; i < 2 * kSlack; ++i) begin(large, i);
  EXPECT_EQ(large.room(), 0u) << "the number used before the storage was measured";
  EXPECT_EQ(large.most_under_way(), 2 * kSlack);
  EXPECT_EQ(held_.look().now, 3 * kPhoto + 2 * kSlack * kPhoto);
}

TEST_F(FetchStockTest, AFetchHoldsWhatItsBufferHasAndASpareOneIsUsedAgain) {
  FetchStock stock(kSlack, 1000 * kPhoto, 1, false, held_);
  stock.keep_spare();
  FetchStock::Entry& entry = begin(stock, 7);
  finish(stock, entry, 5000);
  EXPECT_EQ(stock.under_way(), 0u);
  EXPECT_EQ(stock.held_bytes(), entry.buffer_bytes());
  EXPECT_LT(stock.mean_bytes(), kPhoto);
  EXPECT_EQ(stock.claim(8), nullptr);
  EXPECT_EQ(stock.claim(7), &entry);
  EXPECT_EQ(stock.claim(7), nullptr) << "another thread has it";
  stock.taken(entry, unused_);
  EXPECT_TRUE(stock.has_spare());
  EXPECT_EQ(stock.size(), 0u);
  EXPECT_EQ(stock.held_bytes(), entry.buffer_bytes());
  EXPECT_EQ(&begin(stock, 9), &entry);
  EXPECT_FALSE(stock.has_spare());
  EXPECT_TRUE(unused_.empty());
}

TEST_F(FetchStockTest, WhatIsMuchOlderThanWhatWasTakenIsAbandoned) {
  FetchStock stock(kSlack, 1000 * kPhoto, 1, false, held_);
  stock.keep_spare();
  std::vector<FetchStock::Entry*> entries;
  for (std::uint64_t i = 0; i < 7; ++i) entries.push_back(&begin(stock, i));
  for (const std::size_t i : {0u, 6u}) finish(stock, *entries[i], 100);
  ASSERT_EQ(stock.claim(6), entries[6]);
  stock.taken(*entries[6], unused_);  // 0 and 1 have expired; 1 is still in flight
  EXPECT_EQ(stock.claim(0), nullptr);
  EXPECT_EQ(stock.claim(1), nullptr);
  EXPECT_EQ(stock.claim(2), entries[2]);
  EXPECT_EQ(stock.size(), 5u);
  finish(stock, *entries[1], 100);
  EXPECT_EQ(stock.size(), 4u) << "it is released when finished";
}

TEST_F(FetchStockTest, WhatIsJoinedIsBegunManyAtATime) {
  constexpr std::uint64_t kSmall = 1000;
  FetchStock stock(kSlack, 1000 * kPhoto, 1, true, held_), tight(kSlack, 8 * kPhoto, 1, true, held_);
  stock.keep_spare();
  std::uint64_t begun = 0;
  std::vector<FetchStock::Entry*> entries;
  while (stock.may_begin()) entries.push_back(&begin(stock, begun++));
  EXPECT_EQ(begun, 128u) << "enough to join if the storage is near";
  for (FetchStock::Entry* entry : entries) finish(stock, *entry, kSmall, true);
  for (std::uint64_t taken = 0; taken < 32; ++taken) {
    EXPECT_FALSE(stock.may_begin()) << taken;
    EXPECT_FALSE(stock.has_much_room()) << taken;
    stock.taken(*stock.claim(taken), unused_);
  }
  EXPECT_TRUE(stock.has_much_room());
  std::uint64_t again = 0;
  for (; stock.may_begin(); ++again) begin(stock, begun++);
  EXPECT_EQ(again, 32u);

  std::vector<FetchStock::Entry*> large;
  while (tight.may_begin()) large.push_back(&begin(tight, large.size()));
  EXPECT_EQ(large.size(), 8u) << "memory is the limit";
  for (FetchStock::Entry* entry : large) finish(tight, *entry, kPhoto - 1);
  for (std::uint64_t taken = 0; taken < 2; ++taken) {
    EXPECT_FALSE(tight.may_begin()) << taken;
    tight.taken(*tight.claim(taken), unused_);
  }
  EXPECT_TRUE(tight.may_begin()) << "a quarter of those that fit";
}

TEST_F(FetchStockTest, WhereReadsAreJoinedTheFirstAnswerMakesRoomForOneMore) {
  for (const bool joins : {false, true}) {
    FetchStock stock(kSlack, 1000 * kPhoto, 1, joins, held_);
    FetchStock::Entry& first = begin(stock, 0);
    for (std::uint64_t i = 1; stock.room() > 0; ++i) begin(stock, i);
    finish(stock, first, 100);
    EXPECT_EQ(stock.room(), joins ? 1u : 0u);
  }
}

TEST_F(FetchStockTest, BuffersThatAreLargerThanWasThoughtLeaveRoomAgain) {
  for (const bool joins : {false, true}) {
    FetchStock stock(kSlack, 8 * kPhoto, 1, joins, held_);
    stock.keep_spare();
    std::vector<FetchStock::Entry*> entries;
    while (stock.may_begin()) entries.push_back(&begin(stock, entries.size()));
    for (FetchStock::Entry* entry : entries) finish(stock, *entry, 2 * kPhoto);
    EXPECT_GT(stock.held_bytes(), 8 * kPhoto);
    for (std::uint64_t taken = 0; taken < entries.size(); ++taken) stock.taken(*stock.claim(taken), unused_);
    EXPECT_LE(stock.held_bytes(), 8 * kPhoto);
    EXPECT_TRUE(stock.may_begin()) << "all of them were taken";
  }
}

TEST_F(FetchStockTest, KeepsNothingOnceNothingIsFetched) {
  {
    FetchStock stock(kSlack, 1000 * kPhoto, 1, false, held_);
    stock.keep_spare();
    FetchStock::Entry &taken = begin(stock, 0), &finished = begin(stock, 1), &late = begin(stock, 2);
    finish(stock, taken, 100);
    finish(stock, finished, 100);
    stock.taken(*stock.claim(0), unused_);
    stock.keep_none(unused_);
    EXPECT_EQ(unused_.size(), 2u);
    EXPECT_FALSE(stock.has_spare());
    EXPECT_EQ(stock.claim(1), nullptr);
    finish(stock, late, 100);
    EXPECT_EQ(unused_.size(), 3u) << "it is no longer wanted";
    EXPECT_EQ(stock.size(), 0u);
    EXPECT_EQ(stock.held_bytes(), 0u);
  }
  EXPECT_EQ(held_.look().now, 0u);
}

}  // namespace
}  // namespace feedline::pipeline
