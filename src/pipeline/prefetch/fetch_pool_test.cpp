// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kSlack = 4;
constexpr std::uint64_t kPhoto = 128 << 10;  // assumed size of a sample before any were measured

class FetchPoolTest : public testing::Test {
 protected:
  FetchPool::Entry& begin(FetchPool& pool, std::uint64_t sample) {
    if (fresh_.empty()) fresh_.emplace_back().parts.resize(1);
    return pool.begin({.sample = sample}, fresh_);
  }
  void finish(FetchPool& pool, FetchPool::Entry& entry, std::size_t bytes, bool was_near = false) {
    FetchTable::Part& part = entry.parts.front();
    entry.used = 1;
    part.bytes = std::span<const std::byte>(part.buffer.resize(bytes));
    part.was_near = was_near;
    pool.finish(entry, entry.outcome(), unused_);
  }

  telemetry::HeldBytes held_;
  FetchPool::Entries fresh_, unused_;
};

TEST_F(FetchPoolTest, HasRoomForSoManyAndForSoMuch) {
  FetchPool small(kSlack, 3 * kPhoto, 1, false, held_), large(kSlack, 1000 * kPhoto, 1, false, held_);
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

TEST_F(FetchPoolTest, AFetchHoldsWhatItsBufferHasAndASpareOneIsUsedAgain) {
  FetchPool pool(kSlack, 1000 * kPhoto, 1, false, held_);
  pool.keep_spare();
  FetchPool::Entry& entry = begin(pool, 7);
  finish(pool, entry, 5000);
  EXPECT_EQ(pool.under_way(), 0u);
  EXPECT_EQ(pool.held_bytes(), entry.buffer_bytes());
  EXPECT_LT(pool.mean_bytes(), kPhoto);
  EXPECT_EQ(pool.claim(8), nullptr);
  EXPECT_EQ(pool.claim(7), &entry);
  EXPECT_EQ(pool.claim(7), nullptr) << "another thread has it";
  pool.taken(entry, unused_);
  EXPECT_TRUE(pool.has_spare());
  EXPECT_EQ(pool.size(), 0u);
  EXPECT_EQ(pool.held_bytes(), entry.buffer_bytes());
  EXPECT_EQ(&begin(pool, 9), &entry);
  const base::SampleKey other{.epoch = 1}, same{};
  EXPECT_EQ(pool.claim(9, &other), nullptr) << "the next epoch's";
  EXPECT_EQ(pool.claim(9, &same), &entry);
  EXPECT_FALSE(pool.has_spare());
  EXPECT_TRUE(unused_.empty());
}

TEST_F(FetchPoolTest, AClaimFindsTheFetchWithItsDrawsAndNotTheOldest) {
  FetchPool pool(kSlack, 1000 * kPhoto, 1, false, held_);
  std::vector<FetchPool::Entry*> entries;
  for (std::uint64_t draw = 0; draw < 2; ++draw) {
    fresh_.emplace_back().parts.resize(1);
    entries.push_back(&pool.begin({.sample = 7, .draw = draw}, fresh_));
  }
  const base::SampleKey second{.sample = 1};
  EXPECT_EQ(pool.claim(7, &second), entries[1]);
  EXPECT_EQ(pool.claim(7), entries[0]);
}

TEST_F(FetchPoolTest, WhatIsMuchOlderThanWhatWasTakenIsAbandoned) {
  FetchPool pool(kSlack, 1000 * kPhoto, 1, false, held_);
  pool.keep_spare();
  std::vector<FetchPool::Entry*> entries;
  for (std::uint64_t i = 0; i < 7; ++i) entries.push_back(&begin(pool, i));
  for (const std::size_t i : {0u, 6u}) finish(pool, *entries[i], 100);
  ASSERT_EQ(pool.claim(6), entries[6]);
  pool.taken(*entries[6], unused_);  // 0 and 1 have expired; 1 is still in flight
  EXPECT_EQ(pool.claim(0), nullptr);
  EXPECT_EQ(pool.claim(1), nullptr);
  EXPECT_EQ(pool.claim(2), entries[2]);
  EXPECT_EQ(pool.size(), 5u);
  finish(pool, *entries[1], 100);
  EXPECT_EQ(pool.size(), 4u) << "it is released when finished";
}

TEST_F(FetchPoolTest, WhatIsJoinedIsBegunManyAtATime) {
  constexpr std::uint64_t kSmall = 1000;
  FetchPool pool(kSlack, 1000 * kPhoto, 1, true, held_), tight(kSlack, 8 * kPhoto, 1, true, held_);
  pool.keep_spare();
  std::uint64_t begun = 0;
  std::vector<FetchPool::Entry*> entries;
  while (pool.may_begin()) entries.push_back(&begin(pool, begun++));
  EXPECT_EQ(begun, 128u) << "enough to join if the storage is near";
  for (FetchPool::Entry* entry : entries) finish(pool, *entry, kSmall, true);
  for (std::uint64_t taken = 0; taken < 32; ++taken) {
    EXPECT_FALSE(pool.may_begin()) << taken;
    EXPECT_FALSE(pool.has_much_room()) << taken;
    pool.taken(*pool.claim(taken), unused_);
  }
  EXPECT_TRUE(pool.has_much_room());
  std::uint64_t again = 0;
  for (; pool.may_begin(); ++again) begin(pool, begun++);
  EXPECT_EQ(again, 32u);

  std::vector<FetchPool::Entry*> large;
  while (tight.may_begin()) large.push_back(&begin(tight, large.size()));
  EXPECT_EQ(large.size(), 8u) << "memory is the limit";
  for (FetchPool::Entry* entry : large) finish(tight, *entry, kPhoto - 1);
  for (std::uint64_t taken = 0; taken < 2; ++taken) {
    EXPECT_FALSE(tight.may_begin()) << taken;
    tight.taken(*tight.claim(taken), unused_);
  }
  EXPECT_TRUE(tight.may_begin()) << "a quarter of those that fit";
}

TEST_F(FetchPoolTest, WhereReadsAreJoinedTheFirstAnswerMakesRoomForOneMore) {
  for (const bool joins : {false, true}) {
    FetchPool pool(kSlack, 1000 * kPhoto, 1, joins, held_);
    FetchPool::Entry& first = begin(pool, 0);
    for (std::uint64_t i = 1; pool.room() > 0; ++i) begin(pool, i);
    finish(pool, first, 100);
    EXPECT_EQ(pool.room(), joins ? 1u : 0u);
  }
}

TEST_F(FetchPoolTest, BuffersThatAreLargerThanWasThoughtLeaveRoomAgain) {
  for (const bool joins : {false, true}) {
    FetchPool pool(kSlack, 8 * kPhoto, 1, joins, held_);
    pool.keep_spare();
    std::vector<FetchPool::Entry*> entries;
    while (pool.may_begin()) entries.push_back(&begin(pool, entries.size()));
    for (FetchPool::Entry* entry : entries) finish(pool, *entry, 2 * kPhoto);
    EXPECT_GT(pool.held_bytes(), 8 * kPhoto);
    for (std::uint64_t taken = 0; taken < entries.size(); ++taken) pool.taken(*pool.claim(taken), unused_);
    EXPECT_LE(pool.held_bytes(), 8 * kPhoto);
    EXPECT_TRUE(pool.may_begin()) << "all of them were taken";
  }
}

TEST_F(FetchPoolTest, KeepsNothingOnceNothingIsFetched) {
  {
    FetchPool pool(kSlack, 1000 * kPhoto, 1, false, held_);
    pool.keep_spare();
    FetchPool::Entry &taken = begin(pool, 0), &finished = begin(pool, 1), &late = begin(pool, 2);
    finish(pool, taken, 100);
    finish(pool, finished, 100);
    pool.taken(*pool.claim(0), unused_);
    pool.keep_none(unused_);
    EXPECT_EQ(unused_.size(), 2u);
    EXPECT_FALSE(pool.has_spare());
    EXPECT_EQ(pool.claim(1), nullptr);
    finish(pool, late, 100);
    EXPECT_EQ(unused_.size(), 3u) << "it is no longer wanted";
    EXPECT_EQ(pool.size(), 0u);
    EXPECT_EQ(pool.held_bytes(), 0u);
  }
  EXPECT_EQ(held_.look().now, 0u);
}

}  // namespace
}  // namespace feedline::pipeline
