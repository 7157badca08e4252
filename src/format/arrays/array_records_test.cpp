// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_records.h"

#include <gtest/gtest.h>

#include <cstring>

#include "format/combined/joined_format.h"

namespace feedline::format {
namespace {

template <typename T>
NamedArray named(const std::string& name, const std::string& kind, const std::vector<T>& values, Shape row,
                 std::uint64_t rows, DType dtype) {
  const ArraySpec spec{dtype, row};
  return {name, reinterpret_cast<const std::byte*>(values.data()),
          rows, static_cast<std::ptrdiff_t>(spec.bytes()),
          spec, nullptr,
          {},   {},
          kind};
}

std::vector<std::uint8_t> counted(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
  return values;
}

std::string refusal(std::vector<NamedArray> arrays) {
  const auto made = ArrayRecords::make(std::move(arrays));
  return made ? "accepted" : made.error().what;
}

TEST(ArrayRecordsTest, PixelsAreViewsButWhereKernelsWouldReadBehindTheArray) {
  constexpr int kHeight = 5, kWidth = 7;
  constexpr std::size_t kBytes = kHeight * kWidth * 3, kRows = 4;
  const auto pixels = counted(kBytes * kRows);
  const auto format = ArrayRecords::make({named("image", "image", pixels, {kHeight, kWidth, 3}, kRows, DType::kUint8)});
  ASSERT_TRUE(format) << format.error().what;
  memory::Record record;
  for (std::uint64_t i = 0; i < kRows; ++i) {
    ASSERT_TRUE((*format)->read(i, record));
    const memory::PixelView& view = record.fields[0].pixels;
    EXPECT_EQ(view.width, kWidth);
    EXPECT_EQ(view.height, kHeight);
    EXPECT_EQ(view.channels, 3);
    EXPECT_EQ(view.stride, std::size_t{kWidth * 3});
    EXPECT_EQ(std::memcmp(view.data, pixels.data() + i * kBytes, kBytes), 0) << "row " << i;
    // the last image is smaller than the slack, and no memory follows it
    EXPECT_EQ(view.data == pixels.data() + i * kBytes, i + 1 < kRows) << "row " << i;
    EXPECT_EQ(record.bytes_read, kBytes);
  }
}

TEST(ArrayRecordsTest, RowsThatLieApartAreCopied) {
  const auto pixels = counted(4 * 4 * 600);
  NamedArray array = named("image", "image", pixels, {4, 4}, 300, DType::kUint8);
  array.stride = 32;
  const auto format = ArrayRecords::make({array});
  ASSERT_TRUE(format) << format.error().what;
  memory::Record record;
  ASSERT_TRUE((*format)->read(3, record));
  EXPECT_NE(record.fields[0].pixels.data, pixels.data() + 96);
  EXPECT_EQ(std::memcmp(record.fields[0].pixels.data, pixels.data() + 96, 16), 0);
}

TEST(ArrayRecordsTest, ChannelsThatComeFirstArePutTogether) {
  const auto planes = counted(2 * 3 * 4 * 5);
  const auto format = ArrayRecords::make({named("image", "image", planes, {3, 4, 5}, 2, DType::kUint8),
                                          named("grey", "image", planes, {1, 4, 5}, 2, DType::kUint8)});
  ASSERT_TRUE(format) << format.error().what;
  memory::Record record;
  ASSERT_TRUE((*format)->read(1, record));
  const memory::PixelView& view = record.fields[0].pixels;
  ASSERT_EQ(view.width, 5);
  ASSERT_EQ(view.height, 4);
  ASSERT_EQ(view.channels, 3);
  for (std::size_t pixel = 0; pixel < 20; ++pixel)
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(view.data[pixel * 3 + c], planes[60 + c * 20 + pixel]);
  EXPECT_EQ(record.fields[1].pixels.width, 5);
  EXPECT_EQ(record.fields[1].pixels.height, 4);
  EXPECT_EQ(record.fields[1].pixels.channels, 1);
}

TEST(ArrayRecordsTest, TargetsAreTheirOwnRowsAndMayBeNone) {
  const std::vector<float> boxes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  NamedArray ragged = named("boxes", "boxes", boxes, {4}, 3, DType::kFloat32);
  ragged.offsets = {0, 2, 2, 3};
  const std::vector<std::uint16_t> labels(3 * 6 * 6, 300);
  const auto format = ArrayRecords::make({ragged, named("mask", "mask", labels, {6, 6}, 3, DType::kUint16)});
  ASSERT_TRUE(format) << format.error().what;
  ASSERT_EQ((*format)->size(), 3u);
  memory::Record record;
  for (const auto& [index, first, rows] : {std::tuple{0u, 0.f, 2}, std::tuple{1u, 0.f, 0}, std::tuple{2u, 8.f, 1}}) {
    ASSERT_TRUE((*format)->read(index, record));
    ASSERT_TRUE(record.fields[0].array);
    EXPECT_EQ(*record.fields[0].array, (ArraySpec{DType::kFloat32, {rows, 4}}));
    ASSERT_EQ(record.fields[0].bytes.size(), static_cast<std::size_t>(rows) * 16);
    float number = 0;
    if (rows > 0) std::memcpy(&number, record.fields[0].bytes.data(), sizeof number);
    EXPECT_EQ(number, first);
    EXPECT_EQ(record.fields[1].pixels.channels, 2);  // bytes per label
    EXPECT_EQ(record.fields[1].pixels.stride, 12u);
  }
  EXPECT_EQ((*format)->where(2).key, "row 2");
}

TEST(ArrayRecordsTest, WhatIsNotOfItsKindIsRefusedByName) {
  const auto bytes = counted(4 * 600);
  const std::vector<float> floats(600);
  const auto of = [&](const std::string& kind, Shape row, DType dtype) {
    NamedArray array = named("a", kind, bytes, row, 1, DType::kUint8);
    array.row.dtype = dtype;
    array.stride = static_cast<std::ptrdiff_t>(array.row.bytes());
    return refusal({array});
  };
  EXPECT_EQ(of("text", {4}, DType::kUint8),
            "arrays: \"a\" cannot be 'text'; use image, mask, boxes, keypoints "
            "or array");
  EXPECT_TRUE(of("picture", {4}, DType::kUint8).starts_with("arrays: \"a\" cannot be 'picture'; use"));
  EXPECT_EQ(of("image", {4, 5, 3}, DType::kFloat32),
            "arrays: \"a\" cannot be image: the dtype is float32; pixels are "
            "uint8");
  EXPECT_EQ(of("image", {4, 5, 2}, DType::kUint8),
            "arrays: \"a\" cannot be image: the samples have the shape (4, 5, 2); images are (height, width), "
            "(height, width, 1 or 3) or (3, height, width)");
  EXPECT_TRUE(of("image", {4}, DType::kUint8)
                  .starts_with("arrays: \"a\" cannot be image: the samples have the shape (4); images are"));
  EXPECT_EQ(of("mask", {4, 5}, DType::kInt64),
            "arrays: \"a\" cannot be mask: the dtype is int64; labels are uint8 or uint16: convert the array");
  EXPECT_EQ(of("mask", {4, 5, 1}, DType::kUint8),
            "arrays: \"a\" cannot be mask: the samples have the shape (4, 5, 1); masks are (height, width)");
  EXPECT_EQ(of("boxes", {4}, DType::kFloat32),
            "arrays: \"a\" cannot be boxes: the samples have the shape (4); boxes are (N, 4)");
  EXPECT_EQ(of("keypoints", {4, 3}, DType::kFloat32),
            "arrays: \"a\" cannot be keypoints: the samples have the shape (4, 3); keypoints are (N, 2) or (N, K, 2)");
  EXPECT_EQ(of("image", {0, 5}, DType::kUint8), "arrays: the rows of \"a\" have no elements");
  NamedArray wide = named("a", "image", bytes, {1 << 20, 1 << 20}, 1, DType::kUint8);
  EXPECT_EQ(refusal({wide}), "arrays: \"a\" cannot be image: 1048576 x 1048576 pixels exceed the size limit");
  NamedArray ragged = named("a", "image", bytes, {5}, 10, DType::kUint8);
  ragged.offsets = {0, 5, 5, 10};
  EXPECT_EQ(refusal({ragged}), "arrays: sample 1 of \"a\" is empty");
  const NamedArray once = named("a", "image", bytes, {4, 5}, 1, DType::kUint8);
  EXPECT_EQ(refusal({once, once}), "arrays: the name \"a\" is used twice");
  const NamedArray more = named("b", "array", bytes, {4, 5}, 2, DType::kUint8);
  EXPECT_EQ(refusal({once, more}), "arrays: \"b\" has 2 rows, \"a\" has 1 rows");
}

TEST(ArrayRecordsTest, WhatTheyAreIsInTheFingerprintAndJoinedOnesAreInMemory) {
  const auto bytes = counted(200);
  const auto one = ArrayRecords::make({named("a", "image", bytes, {4, 5}, 2, DType::kUint8)});
  const auto other = ArrayRecords::make({named("a", "mask", bytes, {4, 5}, 2, DType::kUint8)});
  ASSERT_TRUE(one && other);
  EXPECT_NE((*one)->fingerprint(), (*other)->fingerprint());
  const auto joined = join({*one, *one});
  ASSERT_TRUE(joined) << joined.error().what;
  EXPECT_TRUE(records_of(*joined)->is_in_memory());
}

}  // namespace
}  // namespace feedline::format
