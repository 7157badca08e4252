// SPDX-License-Identifier: Apache-2.0
#include "batch/composed.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "batch/make_batch.h"

namespace feedline::batch {
namespace {

// Returns memory that is not cleared, up to a limit.
class DirtyAllocator final : public memory::Allocator {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override {
    if (blocks == 0) return std::unexpected(Error{ErrorCode::kStorage, "no memory", {}, 0});
    --blocks;
    void* data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    std::memset(data, 0xEE, bytes);
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, std::size_t) override {
    ++blocks;
    std::free(data);
  }
  int blocks = 100;
};

const Schema kSchema{
    {"label", {DType::kInt64, {}}},
    {"boxes", {DType::kFloat32, {kAnyLength, 2}}, BatchForm::kPadded, Content::kArray, element_of(-1.5f)},
    {"text", {DType::kUint8, {kAnyLength}}, BatchForm::kList, Content::kText},
    {"crop", {DType::kUint16, {kAnyLength, kAnyLength}}, BatchForm::kList},
    {"size", {DType::kInt32, {kAnyLength}}, BatchForm::kPadded}};

// Three rows with kSchema; the last has neither boxes nor text.
class ComposedTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kRows = 3;
  ComposedTest() {
    write(0, 0, Shape{1, 2}, {1.f, 2.f});
    write(1, 0, Shape{3, 2}, {3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
    at(2, 0).clear(true);
    text(0, "hello");
    text(1, "");
    at(2, 1).clear(true);
    write(0, 2, Shape{1, 2}, std::vector<std::uint16_t>{1, 2});
    write(1, 2, Shape{0, 9}, std::vector<std::uint16_t>{});
    write(2, 2, Shape{2, 2}, std::vector<std::uint16_t>{3, 4, 5, 6});
    for (std::uint64_t row = 0; row < kRows; ++row)
      write(row, 3, Shape{1}, std::vector<std::int32_t>{static_cast<std::int32_t>(10 + row)});
  }
  memory::ListItem& at(std::uint64_t row, std::size_t k) { return items_[row * 4 + k]; }
  template <typename T>
  void write(std::uint64_t row, std::size_t k, const Shape& shape, const std::vector<T>& values) {
    const DType dtype = kSchema[1 + k].array.dtype;
    const auto room = at(row, k).take(shape, dtype);
    ASSERT_EQ(room.size(), values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(room.data(), values.data(), room.size());
  }
  void write(std::uint64_t row, std::size_t k, const Shape& shape, std::initializer_list<float> values) {
    write(row, k, shape, std::vector<float>(values));
  }
  void text(std::uint64_t row, const std::string& words) {
    const auto room = at(row, 1).take({static_cast<std::int64_t>(words.size())}, DType::kUint8);
    if (!words.empty()) std::memcpy(room.data(), words.data(), words.size());
  }
  Result<Composed> compose(std::uint64_t rows = kRows) {
    return Composed::make(layout_, items_, rows, {arrays_, words_});
  }

  const BatchLayout layout_{kSchema, kRows};
  std::vector<memory::ListItem> items_ = std::vector<memory::ListItem>(kRows * 4);
  std::shared_ptr<DirtyAllocator> arrays_ = std::make_shared<DirtyAllocator>();
  std::shared_ptr<DirtyAllocator> words_ = std::make_shared<DirtyAllocator>();
};

TEST_F(ComposedTest, PadsToTheLongestRowAndSaysEachRowsLength) {
  const auto composed = compose();
  ASSERT_TRUE(composed);
  const BatchField boxes = composed->field(0, kSchema[1]);
  EXPECT_EQ(boxes.form, BatchForm::kPadded);
  EXPECT_EQ(boxes.array.spec.shape, (Shape{3, 3, 2}));
  const float x = -1.5f;
  const std::vector<float> expected{1, 2, x, x, x, x, 3, 4, 5, 6, 7, 8, x, x, x, x, x, x};
  EXPECT_EQ(std::vector<float>(boxes.array.as<float>(), boxes.array.as<float>() + 18), expected);
  const auto* lengths = boxes.lengths.as<std::int64_t>();
  EXPECT_EQ(std::vector<std::int64_t>(lengths, lengths + 3), (std::vector<std::int64_t>{1, 3, 0}));
  EXPECT_FALSE(boxes.absent[0]);
  EXPECT_TRUE(boxes.absent[2]);
  const BatchField size = composed->field(3, kSchema[4]);
  EXPECT_EQ(size.array.spec.shape, (Shape{3, 1}));
  EXPECT_EQ(size.array.as<std::int32_t>()[2], 12);
  for (const std::byte* data : {boxes.array.data, boxes.lengths.data, size.array.data})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % memory::Allocator::kAlignment, 0u);
}

TEST_F(ComposedTest, AListIsOneBufferInRowOrderWithItsRowsShapes) {
  const auto composed = compose();
  ASSERT_TRUE(composed);
  const BatchField crop = composed->field(2, kSchema[3]);
  EXPECT_EQ(std::vector(crop.offsets.begin(), crop.offsets.end()), (std::vector<std::int64_t>{0, 4, 4, 12}));
  EXPECT_EQ(crop.shapes[1], (Shape{0, 9}));
  EXPECT_EQ(crop.shapes[2], (Shape{2, 2}));
  const auto* values = reinterpret_cast<const std::uint16_t*>(crop.buffer.data());
  EXPECT_EQ(std::vector<std::uint16_t>(values, values + 6), (std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6}));
  const BatchField text = composed->field(1, kSchema[2]);
  EXPECT_EQ(text.content, Content::kText);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.buffer.data()), text.buffer.size()), "hello");
  EXPECT_FALSE(text.absent[1]) << "empty is not absent";
  EXPECT_TRUE(text.absent[2]);
}

// Only arrays are transferred to a device; words stay on the host.
TEST_F(ComposedTest, WordsHaveABlockOfTheirOwn) {
  auto composed = compose();
  ASSERT_TRUE(composed);
  EXPECT_EQ(arrays_->blocks, 99);
  EXPECT_EQ(words_->blocks, 99);
  composed->take_arrays();
  EXPECT_EQ(arrays_->blocks, 100);
  EXPECT_EQ(composed->field(1, kSchema[2]).buffer[0], std::byte{'h'});
}

TEST_F(ComposedTest, ABatchOfRowsThatAreAllEmptyIsOne) {
  for (auto& item : items_) item.clear();
  const auto composed = compose();
  ASSERT_TRUE(composed);
  EXPECT_EQ(composed->field(0, kSchema[1]).array.spec.shape, (Shape{3, 0, 2}));
  EXPECT_EQ(composed->field(0, kSchema[1]).lengths.as<std::int64_t>()[1], 0);
  EXPECT_EQ(composed->field(1, kSchema[2]).buffer.size(), 0u);
  EXPECT_EQ(composed->field(1, kSchema[2]).offsets[3], 0);
}

// Rows that are not delivered do not count: the padded length is that of the remaining rows.
TEST_F(ComposedTest, RowsThatAreNotDeliveredDoNotCount) {
  const auto composed = compose(1);
  ASSERT_TRUE(composed);
  EXPECT_EQ(composed->field(0, kSchema[1]).array.spec.shape, (Shape{1, 1, 2}));
  EXPECT_EQ(composed->field(2, kSchema[3]).offsets.size(), 2u);
}

TEST_F(ComposedTest, WithoutMemoryThereIsAnErrorAndNothingStays) {
  words_->blocks = 0;
  EXPECT_FALSE(compose());
  EXPECT_EQ(arrays_->blocks, 100);
}

TEST_F(ComposedTest, ABatchHoldsWhatItIsComposedOf) {
  auto composed = compose();
  ASSERT_TRUE(composed);
  const auto layout = std::make_shared<const BatchLayout>(kSchema, kRows);
  Batch batch =
      make_batch({layout, *memory::Lease::take(arrays_, layout->bytes()), std::move(*composed)}, 0, {4, 5, 6});
  ASSERT_EQ(batch.fields().size(), 5u);
  EXPECT_EQ(batch.fields()[0].form, BatchForm::kDense);
  EXPECT_EQ(batch.fields()[2].name, "text");
  EXPECT_TRUE(batch.is_ready());
  EXPECT_TRUE(batch.wait());
  EXPECT_EQ(batch.device(), DeviceLocation());
  const std::shared_ptr<void> memory = batch.memory();
  const BatchField text = batch.fields()[2];
  batch = Batch();
  EXPECT_EQ(text.buffer[4], std::byte{'o'});
  EXPECT_EQ(words_->blocks, 99);
}

TEST(BatchLayout, GivesLateFieldsTheItemsOfTheirRow) {
  const BatchLayout layout(kSchema, 2);
  EXPECT_EQ(layout.bytes(), 64u) << "only the labels";
  EXPECT_EQ(layout.sample_bytes(), 8u);
  std::vector<memory::ListItem> items(8);
  items[5].clear(true);
  alignas(64) std::byte data[64];
  std::vector<memory::Row> rows;
  layout.rows_at(data, items, 1, rows);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].item, nullptr);
  EXPECT_EQ(rows[0].view.data, data + 8);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(rows[1 + k].item, &items[4 + k]);
    EXPECT_EQ(rows[1 + k].view.data, nullptr);
    EXPECT_EQ(rows[1 + k].view.spec, kSchema[1 + k].array);
  }
  EXPECT_FALSE(items[5].absent) << "it is cleared for its row";
}

TEST(BatchLayout, OfLateFieldsAloneTakesNoMemory) {
  const BatchLayout layout({kSchema[1], kSchema[2]}, 4);
  EXPECT_EQ(layout.bytes(), 0u);
  EXPECT_EQ(layout.largest_field_from(1), (std::pair<std::size_t, std::size_t>(0, 0)));
}

// Audio is (channels, samples): each channel is padded at its end.
TEST(ComposedOfAudio, PadsTheLastExtent) {
  const Schema schema{{"audio", {DType::kInt16, {2, kAnyLength}}, BatchForm::kPadded}};
  const BatchLayout layout(schema, 2);
  std::vector<memory::ListItem> items(2);
  const auto write = [&](std::size_t row, const Shape& shape, const std::vector<std::int16_t>& values) {
    std::memcpy(items[row].take(shape, DType::kInt16).data(), values.data(), values.size() * sizeof(std::int16_t));
  };
  write(0, {2, 1}, {1, 2});
  write(1, {2, 3}, {3, 4, 5, 6, 7, 8});
  const auto memory = std::make_shared<DirtyAllocator>();
  const auto composed = Composed::make(layout, items, 2, {memory, memory});
  ASSERT_TRUE(composed);
  const BatchField field = composed->field(0, schema[0]);
  EXPECT_EQ(field.array.spec.shape, (Shape{2, 2, 3}));
  const std::vector<std::int16_t> expected{1, 0, 0, 2, 0, 0, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(std::memcmp(field.array.data, expected.data(), expected.size() * sizeof(std::int16_t)), 0);
  EXPECT_EQ(field.lengths.as<std::int64_t>()[0], 1);
  EXPECT_EQ(field.lengths.as<std::int64_t>()[1], 3);
}

}  // namespace
}  // namespace feedline::batch
