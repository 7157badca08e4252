// SPDX-License-Identifier: Apache-2.0
#include "format/array_format.h"

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
  // every second row of a matrix with ten columns, three of them
  NamedArray strided = named("x", x, {3}, 4, DType::kFloat32);
  const auto format = ArrayFormat::make({strided, named("y", y, {}, 4, DType::kInt64)});
  ASSERT_TRUE(format) << format.error().what;
  float xs[9];
  std::int64_t ys[3];
  std::byte* const fields[] = {reinterpret_cast<std::byte*>(xs), reinterpret_cast<std::byte*>(ys)};
  const std::uint64_t samples[] = {3, 0, 3};
  ASSERT_TRUE((*format)->fill(samples, fields));
  EXPECT_EQ(std::vector<float>(xs, xs + 9), (std::vector<float>{30, 31, 32, 0, 1, 2, 30, 31, 32}));
  EXPECT_EQ(std::vector<std::int64_t>(ys, ys + 3), (std::vector<std::int64_t>{13, 10, 13}));
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
  EXPECT_EQ(grain_of(4), 64u);
  EXPECT_EQ(grain_of(8 << 10), 8u);
  EXPECT_EQ(grain_of(1 << 20), 1u);
}

}  // namespace
}  // namespace feedline::format
