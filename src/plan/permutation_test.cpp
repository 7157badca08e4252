// SPDX-License-Identifier: Apache-2.0
#include "plan/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace feedline::plan {
namespace {

TEST(Permutation, HitsEveryNumberOnce) {
  for (std::uint64_t size = 1; size < 300; ++size) {
    const Permutation permutation(size, size * 7);
    std::vector<int> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t value = permutation(i);
      ASSERT_LT(value, size);
      ++seen[value];
    }
    for (int count : seen) ASSERT_EQ(count, 1) << "size " << size;
  }
}

TEST(Permutation, HitsEveryNumberOnceAroundPowersOfTwo) {
  for (const std::uint64_t size : {65535u, 65536u, 65537u, 100000u}) {
    const Permutation permutation(size, 1);
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) seen[permutation(i)] = true;
    for (std::uint64_t i = 0; i < size; ++i) ASSERT_TRUE(seen[i]);
  }
}

TEST(Permutation, ManyAtATimeAreTheSameAsOneByOne) {
  for (const std::uint64_t size : {1u, 2u, 5u, 63u, 64u, 65u, 257u, 1000u, 1u << 20, 12345678u}) {
    const Permutation permutation(size, size + 3);
    for (const std::uint64_t first : {std::uint64_t{0}, size / 3, size - 1}) {
      std::vector<std::uint64_t> values(std::min<std::uint64_t>(size - first, 200));
      permutation.fill(first, values);
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], permutation(first + i)) << size;
    }
  }
}

TEST(Permutation, KeepsItsValuesOnEveryMachine) {
  const Permutation permutation(1000, 42);
  std::vector<std::uint64_t> first;
  for (std::uint64_t i = 0; i < 5; ++i) first.push_back(permutation(i));
  // golden values: changing them breaks every saved state
  EXPECT_EQ(first, (std::vector<std::uint64_t>{998, 721, 62, 193, 563}));
}

TEST(Permutation, WorksForSizesThatNoListCouldHold) {
  const std::uint64_t size = (std::uint64_t{1} << 50) + 7;
  const Permutation permutation(size, 3);
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_LT(permutation(size - 1 - i), size);
}

// Applies a chi-square test to the (position, value) cells of a permutation of size 10 under 20,000 keys: 9 x 9 degrees
// of freedom; the 99.99 % quantile is 137.
TEST(Permutation, PutsEveryValueEverywhereEquallyOften) {
  constexpr int kSize = 10, kKeys = 20000;
  std::vector<std::vector<double>> count(kSize, std::vector<double>(kSize));
  for (int key = 0; key < kKeys; ++key) {
    const Permutation permutation(kSize, static_cast<std::uint64_t>(key));
    for (std::uint64_t i = 0; i < kSize; ++i) ++count[i][permutation(i)];
  }
  double chi_square = 0;
  const double expected = kKeys / double{kSize};
  for (const auto& row : count)
    for (const double n : row) chi_square += (n - expected) * (n - expected) / expected;
  EXPECT_LT(chi_square, 137);
  EXPECT_GT(chi_square, 35);  // the 0.001 % quantile is 38: being flatter than chance would be wrong too
}

// Neighbours must be separated: the number of i with |p(i + 1) - p(i)| == 1 has a mean of about 2.
TEST(Permutation, TearsNeighboursApart) {
  constexpr std::uint64_t kSize = 1000;
  int pairs = 0;
  for (std::uint64_t key = 0; key < 200; ++key) {
    const Permutation permutation(kSize, key);
    for (std::uint64_t i = 0; i + 1 < kSize; ++i) {
      const auto step = static_cast<std::int64_t>(permutation(i + 1)) - static_cast<std::int64_t>(permutation(i));
      pairs += step == 1 || step == -1;
    }
  }
  EXPECT_NEAR(pairs, 400, 100);  // 200 permutations x about 2 pairs; five standard deviations of a Poisson count
}

}  // namespace
}  // namespace feedline::plan
