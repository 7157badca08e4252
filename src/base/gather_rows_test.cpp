// SPDX-License-Identifier: Apache-2.0
#include "base/gather_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace feedline::base {
namespace {

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  return bytes;
}

// Gathers the rows one by one into a buffer and checks that the margins around it do not change.
void expect_gathered(const Rows& rows, const std::vector<std::uint64_t>& indices) {
  constexpr std::size_t kGuard = 64;
  std::vector<std::byte> out(indices.size() * rows.bytes + 2 * kGuard, std::byte{0xEE});
  auto expected = out;
  for (std::size_t i = 0; i < indices.size(); ++i)
    std::copy_n(rows.data + static_cast<std::ptrdiff_t>(indices[i]) * rows.stride, rows.bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(kGuard + i * rows.bytes));
  gather_rows(rows, indices, out.data() + kGuard);
  EXPECT_EQ(out, expected) << rows.bytes << " bytes, stride " << rows.stride << ", " << indices.size() << " rows";
}

TEST(GatherRows, CopiesEveryLengthAtAnyAddress) {
  const auto data = numbered(100 * 300 + 7);
  for (const std::size_t bytes : {1, 3, 4, 8, 12, 16, 31, 32, 64, 65, 100, 128, 129, 300})
    for (const std::size_t offset : {0, 1, 7})
      expect_gathered({data.data() + offset, static_cast<std::ptrdiff_t>(bytes), bytes}, {3, 99, 0, 3, 41, 98});
}

TEST(GatherRows, LooksAheadNoFurtherThanTheLastRow) {
  const auto data = numbered(64 * 40);
  std::vector<std::uint64_t> indices(40);
  std::iota(indices.rbegin(), indices.rend(), 0);
  for (std::size_t count = 0; count <= indices.size(); ++count)
    expect_gathered({data.data(), 64, 64}, {indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(count)});
}

TEST(GatherRows, RowsMayLieApartAndBackwards) {
  const auto data = numbered(64 * 20);
  expect_gathered({data.data(), 64, 16}, {19, 2, 7});
  expect_gathered({data.data() + std::ptrdiff_t{64} * 19, -64, 32}, {0, 19, 5});
}

TEST(GatherRows, RowsWithoutBytesAreNothing) { gather_rows({}, std::vector<std::uint64_t>{0, 1}, nullptr); }

}  // namespace
}  // namespace feedline::base
