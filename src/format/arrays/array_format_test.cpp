// SPDX-License-Identifier: Apache-2.0
#include "format/arrays/array_format.h"

#include <gtest/gtest.h>

#include <cstring>

namespace feedline::format {
namespace {

template <typename T>
NamedArray named(const std::string& name, const std::vector<T>& values, Shape row, std::uint64_t rows, DType dtype) {
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(values.size() / rows * sizeof(T));
  return {name, reinterpret_cast<const std::byte*>(values.data()), rows, stride, {dtype, row}, nullptr};
}

std::string refusal(std::vector<NamedArray> arrays) {
  const auto made = ArrayFormat::make(std::move(arrays));
  return made ? "accepted" : made.error().what;
}

TEST(ArrayFormatTest, WritesTheRowsThatAreAskedForOfEveryArray) {
  std::vector<float> x(40);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<std::int64_t> y{10, 11, 12, 13};
  // every second row and three of the ten columns of a matrix
  NamedArray strided = named("x", x, {3}, 4, DType::kFloat32);
  const auto format = ArrayFormat::make({strided, named("y", y, {}, 4, DType::kInt64)});
  ASSERT_TRUE(format) << format.error().what;
  float xs[9];
  std::int64_t ys[3];
  const ArrayView first_rows[] = {{reinterpret_cast<std::byte*>(xs), {DType::kFloat32, {3}}},
                                  {reinterpret_cast<std::byte*>(ys), {DType::kInt64, {}}}};
  const std::uint64_t samples[] = {3, 0, 3};
  ASSERT_TRUE((*format)->fill(samples, first_rows));
  EXPECT_EQ(std::vector<float>(xs, xs + 9), (std::vector<float>{30, 31, 32, 0, 1, 2, 30, 31, 32}));
  EXPECT_EQ(std::vector<std::int64_t>(ys, ys + 3), (std::vector<std::int64_t>{13, 10, 13}));
}

// A ragged array of four samples, which have 3, 1, 2 and 4 rows of two columns, with the numbers 0 .. 19.
NamedArray ragged(const std::vector<std::int32_t>& values, std::vector<std::int64_t> offsets = {0, 3, 4, 6, 10}) {
  NamedArray array = named("a", values, {2}, 10, DType::kInt32);
  array.offsets = std::move(offsets);
  array.pad = element_of(std::int32_t{-7});
  return array;
}

std::vector<std::int32_t> twenty() {
  std::vector<std::int32_t> values(20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  return values;
}

TEST(ArrayFormatTest, ReadsIntegersOfARaggedSample) {
  const std::vector<std::uint8_t> values{0, 1, 1, 0, 1, 0};
  NamedArray array = named("a", values, {}, 6, DType::kBool);
  array.offsets = {0, 2, 6};
  const auto format = ArrayFormat::make({std::move(array)});
  ASSERT_TRUE(format) << format.error().what;
  std::int64_t read[3];
  EXPECT_EQ((*format)->read_integers(1, 0, 1, read), 3u);
  EXPECT_EQ(std::vector<std::int64_t>(read, read + 3), (std::vector<std::int64_t>{0, 1, 0}));
}

TEST(ArrayFormatTest, RaggedSamplesArePaddedToTheRowAndCountedBehind) {
  const auto values = twenty();
  const std::vector<std::uint8_t> label{5, 6, 7, 8};
  const auto format = ArrayFormat::make({ragged(values), named("label", label, {}, 4, DType::kUint8)});
  ASSERT_TRUE(format) << format.error().what;
  ASSERT_EQ((*format)->size(), 4u);
  ASSERT_EQ((*format)->fields().size(), 3u);
  EXPECT_EQ((*format)->fields()[0].array.shape, (Shape{kAnyLength, 2}));
  EXPECT_EQ((*format)->fields()[1].name, "a_length");
  EXPECT_EQ((*format)->longest(0), 4u);
  EXPECT_EQ((*format)->length(2, 0), 2u);
  std::int32_t a[12];
  std::int64_t lengths[2];
  std::uint8_t labels[2];
  const ArrayView first_rows[] = {{reinterpret_cast<std::byte*>(a), {DType::kInt32, {3, 2}}},
                                  {reinterpret_cast<std::byte*>(lengths), {DType::kInt64, {}}},
                                  {reinterpret_cast<std::byte*>(labels), {DType::kUint8, {}}}};
  const std::uint64_t samples[] = {2, 0};
  const auto read = (*format)->fill(samples, first_rows);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, 5 * 8u + 2);
  EXPECT_EQ(std::vector<std::int32_t>(a, a + 12), (std::vector<std::int32_t>{8, 9, 10, 11, -7, -7, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(std::vector<std::int64_t>(lengths, lengths + 2), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::vector<std::uint8_t>(labels, labels + 2), (std::vector<std::uint8_t>{7, 5}));
}

TEST(ArrayFormatTest, WrongOffsetsAreNamed) {
  const auto values = twenty();
  const auto why = [&](std::vector<std::int64_t> offsets) { return refusal({ragged(values, std::move(offsets))}); };
  EXPECT_NE(why({0, 4, 3, 10}).find("do not ascend: sample 1 goes from 4 to 3"), std::string::npos);
  EXPECT_NE(why({0, 4, 4, 10}).find("sample 1 of \"a\" is empty"), std::string::npos);
  EXPECT_NE(why({0, 4, 9}).find("end at 9, but there are 10 rows"), std::string::npos);
  EXPECT_NE(why({0, 4, 11}).find("end at 11"), std::string::npos);
  EXPECT_NE(why({1, 10}).find("begin at 1"), std::string::npos);
  EXPECT_NE(why({-1, 10}).find("begin at -1"), std::string::npos);
  NamedArray apart = ragged(values, {0, 2, 5});
  apart.rows = 5;
  apart.stride *= 2;
  EXPECT_NE(refusal({apart}).find("are not contiguous"), std::string::npos);
  const std::vector<std::int64_t> lengths(4);
  EXPECT_NE(
      refusal({ragged(values), named("a_length", lengths, {}, 4, DType::kInt64)}).find("\"a_length\" is used twice"),
      std::string::npos);
  EXPECT_NE(refusal({ragged(values), named("b", lengths, {}, 2, DType::kInt64)}).find("\"b\" has 2 rows"),
            std::string::npos);
}

TEST(ArrayFormatTest, EveryLengthIsInTheFingerprint) {
  const auto values = twenty();
  const auto print = [&](std::vector<std::int64_t> offsets) {
    return (*ArrayFormat::make({ragged(values, std::move(offsets))}))->fingerprint();
  };
  EXPECT_NE(print({0, 3, 4, 6, 10}), print({0, 3, 5, 6, 10}));
}

TEST(ArrayFormatTest, ChangedRowsChangeTheFingerprint) {
  std::vector<std::int64_t> y(1000, 5);
  const auto print = [&] { return (*ArrayFormat::make({named("y", y, {}, 1000, DType::kInt64)}))->fingerprint(); };
  const std::uint64_t before = print();
  EXPECT_EQ(print(), before);
  y[0] = 6;
  EXPECT_NE(print(), before);
}

TEST(ArrayFormatTest, RefusesWhatHasNoSamples) {
  const std::vector<std::int64_t> y(6);
  EXPECT_NE(refusal({}).find("at least one"), std::string::npos);
  EXPECT_NE(
      refusal({named("a", y, {}, 6, DType::kInt64), named("b", y, {2}, 3, DType::kInt64)}).find("\"b\" has 3 rows"),
      std::string::npos);
  EXPECT_NE(refusal({named("a", y, {}, 6, DType::kInt64), named("a", y, {}, 6, DType::kInt64)}).find("twice"),
            std::string::npos);
  EXPECT_NE(refusal({named("a", y, {0}, 6, DType::kInt64)}).find("no elements"), std::string::npos);
}

TEST(ArrayFormatTest, SmallSamplesGoToThreadsInGroupsAndLargeOnesAlone) {
  EXPECT_EQ(grain_of(4), 256u);
  EXPECT_EQ(grain_of(8 << 10), 8u);
  EXPECT_EQ(grain_of(1 << 20), 1u);
}

}  // namespace
}  // namespace feedline::format
