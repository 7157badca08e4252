// SPDX-License-Identifier: Apache-2.0
#include "memory/row.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace feedline::memory {
namespace {

TEST(ListItem, GivesRoomForItsShapeAndKeepsIt) {
  ListItem item;
  const auto room = item.take({2, 3}, DType::kFloat32);
  EXPECT_EQ(room.size(), 24u);
  std::memset(room.data(), 1, room.size());
  EXPECT_EQ(item.size, 24u);
  EXPECT_EQ(item.shape, (Shape{2, 3}));
  const auto smaller = item.take({5}, DType::kUint8);
  EXPECT_EQ(smaller.data(), room.data()) << "the memory of a larger row is sufficient";
  EXPECT_EQ(item.size, 5u);
  EXPECT_EQ(item.bytes.data(), room.data());
}

TEST(ListItem, RefersToALentRowUntilTheLoanEnds) {
  ListItem item;
  const auto lent = std::make_shared<std::vector<float>>(6, 1.5F);
  item.lend({reinterpret_cast<std::byte*>(lent->data()), {DType::kFloat32, {2, 3}}}, lent);
  EXPECT_EQ(item.size, 24u);
  EXPECT_EQ(item.shape, (Shape{2, 3}));
  EXPECT_EQ(static_cast<const void*>(item.data()), lent->data());
  EXPECT_EQ(item.capacity(), 24u);
  item.end_loan();
  EXPECT_EQ(lent.use_count(), 1);
  item.lend({reinterpret_cast<std::byte*>(lent->data()), {DType::kFloat32, {6}}}, lent);
  const auto room = item.take({2}, DType::kFloat32);
  EXPECT_EQ(item.data(), room.data()) << "its own memory again";
  EXPECT_EQ(lent.use_count(), 1);
}

TEST(ListItem, ARowOfNothingIsARow) {
  ListItem item;
  EXPECT_EQ(item.take({0, 4}, DType::kInt64).size(), 0u);
  EXPECT_EQ(item.shape, (Shape{0, 4}));
  EXPECT_EQ(item.take({}, DType::kInt64).size(), 8u) << "a number";
}

TEST(ListItem, BringsNoMoreIntoMemoryThanItMay) {
  ListItem item;
  ASSERT_TRUE(item.make_room({10, 10}, DType::kInt32, 400));
  EXPECT_EQ(item.size, 400u);
  const auto refused = item.make_room({10, 11}, DType::kInt32, 400);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kData);
  EXPECT_EQ(item.size, 0u) << "the previous content is gone";
  EXPECT_FALSE(item.make_room({std::numeric_limits<std::int64_t>::max(), 4}, DType::kInt32, 400));
  EXPECT_FALSE(item.make_room({-1}, DType::kInt32, 400));
}

TEST(ListItem, ClearedItIsEmptyOrAbsentUntilItIsTaken) {
  ListItem item;
  item.take({3}, DType::kUint8);
  item.clear(true);
  EXPECT_TRUE(item.absent);
  EXPECT_EQ(item.size, 0u);
  EXPECT_EQ(item.shape, (Shape{0}));
  item.take({1}, DType::kUint8);
  EXPECT_FALSE(item.absent);
  item.clear(true);
  ASSERT_TRUE(item.make_room({1}, DType::kUint8, 10));
  EXPECT_FALSE(item.absent);
}

}  // namespace
}  // namespace feedline::memory
