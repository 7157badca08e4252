// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/variable_size_items.h"

#include <gtest/gtest.h>

namespace feedline::pipeline {
namespace {

TEST(VariableSizeItemPool, GivesTheNextSlotWhatTheLastOneHad) {
  VariableSizeItemPool pool(4);
  auto items = pool.take();
  ASSERT_EQ(items->all.size(), 4u);
  const std::byte* room = items->all[2].take({1024}, DType::kUint8).data();
  EXPECT_EQ(items->tidy(), 1024u);
  EXPECT_EQ(pool.held_bytes(), 1024u);
  pool.give_back(std::move(items));
  items = pool.take();
  EXPECT_EQ(items->all[2].take({900}, DType::kUint8).data(), room);
  const auto another = pool.take();
  EXPECT_EQ(another->all[2].bytes.capacity(), 0u);
}

TEST(VariableSizeItemPool, WhatIsDroppedIsNotHeld) {
  VariableSizeItemPool pool(2);
  auto first = pool.take(), second = pool.take();
  first->all[0].take({128}, DType::kUint8);
  second->all[1].take({64}, DType::kUint8);
  first->tidy();
  second->tidy();
  EXPECT_EQ(pool.held_bytes(), 192u);
  first.reset();  // with a slot of an abandoned epoch
  EXPECT_EQ(pool.held_bytes(), 64u);
}

TEST(VariableSizeItemPool, OneHugeRowDoesNotStay) {
  constexpr std::int64_t kUsual = 1 << 17, kHuge = 128 * kUsual;
  VariableSizeItemPool pool(8);
  auto items = pool.take();
  for (auto& item : items->all) item.take({kUsual}, DType::kUint8);
  items->all[3].take({kHuge}, DType::kUint8);
  EXPECT_EQ(items->tidy(), 7u * kUsual + kHuge) << "it was free";
  for (auto& item : items->all) item.take({kUsual}, DType::kUint8);
  items->tidy();
  EXPECT_EQ(pool.held_bytes(), 7u * kUsual) << "nor its room after the next batch, which did not use it";
}

TEST(VariableSizeItemPool, WithoutVariableSizeFieldsThereIsNothing) {
  EXPECT_EQ(VariableSizeItemPool(0).take(), nullptr);
}

}  // namespace
}  // namespace feedline::pipeline
