// SPDX-License-Identifier: Apache-2.0
#include "batch/batch_layout.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "batch/make_batch.h"

namespace feedline::batch {
namespace {

class MallocAllocator final : public memory::Allocator {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override {
    ++live;
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  }
  void release(std::byte* data, std::size_t) override {
    --live;
    std::free(data);
  }
  int live = 0;
};

const Schema kSchema{
    {"image", {DType::kFloat32, {3, 5, 7}}}, {"label", {DType::kInt64, {}}}, {"mask", {DType::kUint8, {3}}}};

TEST(BatchLayout, KeepsClassesOfRowsBehindTheTargetsThatAreMadeOfThem) {
  Schema schema = kSchema;
  schema[1].array = {DType::kFloat32, {11}};
  const BatchLayout layout(schema, 6, 1), without(schema, 6);
  EXPECT_GE(layout.bytes(), without.bytes() + 6 * sizeof(std::int64_t));
  alignas(64) static std::byte data[64 * 1024];
  ASSERT_LE(layout.bytes(), sizeof data);
  const auto classes = layout.classes(data);
  ASSERT_EQ(classes.size(), 6u);
  EXPECT_GE(reinterpret_cast<std::byte*>(classes.data()), data + without.bytes());
  EXPECT_LE(reinterpret_cast<std::byte*>(classes.data() + 6), data + layout.bytes());
  std::vector<memory::Row> row;
  std::vector<ArrayView> views;
  for (std::uint64_t r = 0; r < 6; ++r) {
    layout.rows_at(data, {}, r, row);
    layout.row_views(data, r, views);
    EXPECT_EQ(row[1].view.spec, (ArraySpec{DType::kInt64, {}}));
    EXPECT_EQ(row[1].view.data, reinterpret_cast<std::byte*>(&classes[r]));
    EXPECT_EQ(views[1].data, row[1].view.data);
    EXPECT_EQ(row[2].view.spec, schema[2].array);
  }
  EXPECT_EQ(layout.field_view(data, 1, 6).spec, (ArraySpec{DType::kFloat32, {6, 11}}));
}

TEST(BatchLayout, FieldsAreAlignedAndRowsTouch) {
  const BatchLayout layout(kSchema, 6);
  alignas(64) static std::byte data[64 * 1024];
  ASSERT_LE(layout.bytes(), sizeof data);
  std::vector<ArrayView> row, next;
  layout.row_views(data, 0, row);
  layout.row_views(data, 1, next);
  for (std::size_t i = 0; i < kSchema.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(row[i].data) % memory::Allocator::kAlignment, 0u);
    EXPECT_EQ(next[i].data - row[i].data, static_cast<std::ptrdiff_t>(kSchema[i].array.bytes()));
    EXPECT_EQ(layout.field_view(data, i, 6).data, row[i].data);
  }
  layout.row_views(data, 5, row);
  for (std::size_t i = 0; i + 1 < kSchema.size(); ++i) {
    std::vector<ArrayView> first;
    layout.row_views(data, 0, first);
    EXPECT_LE(row[i].data + kSchema[i].array.bytes(), first[i + 1].data) << "fields overlap";
  }
  EXPECT_LE(row.back().data + kSchema.back().array.bytes(), data + layout.bytes());
}

TEST(Batch, KeepsItsMemoryUntilTheLastHolderLetsGo) {
  const auto allocator = std::make_shared<MallocAllocator>();
  auto layout = std::make_shared<const BatchLayout>(kSchema, 4);
  auto lease = memory::Lease::take(allocator, layout->bytes());
  ASSERT_TRUE(lease);
  Batch batch = make_batch({layout, std::move(*lease)}, 9, {5, 6, 7});
  layout.reset();
  EXPECT_EQ(batch.rows(), 3u);
  EXPECT_EQ(batch.index(), 9u);
  EXPECT_EQ(batch.fields()[0].name, "image");  // the name is valid as long as the batch
  EXPECT_EQ(batch.fields()[0].array.spec.shape, (Shape{3, 3, 5, 7}));
  std::shared_ptr<void> holder = batch.memory();
  batch = Batch();
  EXPECT_EQ(allocator->live, 1);
  holder.reset();
  EXPECT_EQ(allocator->live, 0);
}

}  // namespace
}  // namespace feedline::batch
