// SPDX-License-Identifier: Apache-2.0
#include "memory/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

namespace feedline::memory {
namespace {

// Copies every element by its own index.
void copy_each(const std::byte* in, const Strides& in_strides, std::byte* out, const Strides& out_strides,
               std::span<const std::int64_t> size, std::size_t element, std::size_t axis = 0) {
  if (axis == size.size()) {
    std::memcpy(out, in, element);
    return;
  }
  for (std::int64_t i = 0; i < size[axis]; ++i)
    copy_each(in + i * in_strides[axis], in_strides, out + i * out_strides[axis], out_strides, size, element, axis + 1);
}

TEST(StridedCopy, EveryOrderAndDirectionOfTheAxes) {
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    const std::size_t element = std::size_t{1} << random() % 4, dims = 1 + random() % 5;
    std::array<std::int64_t, Shape::kMaxDims> size{};
    std::size_t count = 1;
    for (std::size_t i = 0; i < dims; ++i)
      count *= static_cast<std::size_t>(size[i] = 1 + random() % (dims < 3 ? 70 : 6));
    std::array<std::size_t, Shape::kMaxDims> order{0, 1, 2, 3, 4, 5};
    std::shuffle(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(dims), random);
    // the input has its axes in another order, and some of them run backwards
    Strides in_strides{};
    auto stride = static_cast<std::ptrdiff_t>(element);
    std::ptrdiff_t first = 0;
    for (std::size_t i = dims; i-- > 0;) {
      const std::size_t axis = order[i];
      const bool is_backwards = random() % 3 == 0;
      in_strides[axis] = is_backwards ? -stride : stride;
      if (is_backwards) first += stride * (size[axis] - 1);
      stride *= size[axis];
    }
    std::vector<std::byte> in(count * element), out(in.size()), expected(in.size());
    for (std::byte& byte : in) byte = static_cast<std::byte>(random());
    const std::span<const std::int64_t> extents(size.data(), dims);
    const Strides out_strides = c_strides(extents, element);
    copy_each(in.data() + first, in_strides, expected.data(), out_strides, extents, element);
    copy_strided(in.data() + first, std::span(in_strides).first(dims), out.data(), std::span(out_strides).first(dims),
                 extents, element);
    ASSERT_EQ(out, expected) << round;
  }
}

TEST(StridedCopy, ElementsBetweenThoseOfTheBoxStayAsTheyAre) {
  std::vector<std::uint16_t> in(6), out(20, 7);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i + 1);
  const std::array<std::int64_t, 2> size{2, 3};
  const std::array<std::ptrdiff_t, 2> from{6, 2}, to{10, 2};
  copy_strided(reinterpret_cast<const std::byte*>(in.data()), from, reinterpret_cast<std::byte*>(out.data() + 6), to,
               size, 2);
  const std::vector<std::uint16_t> expected{7, 7, 7, 7, 7, 7, 1, 2, 3, 7, 7, 4, 5, 6, 7, 7, 7, 7, 7, 7};
  EXPECT_EQ(out, expected);
}

TEST(StridedCopy, NothingIsCopiedFromAnEmptyArray) {
  const std::array<std::int64_t, 2> size{0, 3};
  const std::array<std::ptrdiff_t, 2> strides{3, 1};
  copy_strided(nullptr, strides, nullptr, strides, size, 1);
}

TEST(StridedCopy, BytesAreReversedWithinElements) {
  std::array<std::uint32_t, 2> values{0x01020304, 0xa0b0c0d0};
  swap_bytes(reinterpret_cast<std::byte*>(values.data()), values.size(), 4);
  EXPECT_EQ(values, (std::array<std::uint32_t, 2>{0x04030201, 0xd0c0b0a0}));
}

}  // namespace
}  // namespace feedline::memory
