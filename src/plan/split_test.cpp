// SPDX-License-Identifier: Apache-2.0
#include "plan/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace feedline::plan {
namespace {

using Parts = std::vector<std::vector<std::uint64_t>>;

std::vector<std::uint64_t> sorted_union(const Parts& parts) {
  std::vector<std::uint64_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return all;
}

TEST(Split, EverySampleIsInOnePartOfTheAskedSize) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<std::uint64_t> counts{seed * 3, 1 + seed % 5, 17, 0};
    const Parts parts = split(counts, seed);
    const auto all = sorted_union(parts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(parts[i].size(), counts[i]);
      EXPECT_TRUE(std::ranges::is_sorted(parts[i]));
    }
    for (std::uint64_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
  }
}

TEST(Split, SeedsDifferAndRepeat) {
  const std::vector<std::uint64_t> counts{900, 100};
  EXPECT_EQ(split(counts, 7), split(counts, 7));
  EXPECT_NE(split(counts, 7), split(counts, 8));
}

// With 1,000 seeds, each of 20 samples is in the part with 5 samples about 250 times, with a standard deviation of 14.
TEST(Split, EverySampleIsAsLikelyAsAnother) {
  std::vector<int> chosen(20);
  const std::vector<std::uint64_t> counts{15, 5};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Parts parts = split(counts, seed);
    for (std::uint64_t sample : parts[1]) ++chosen[sample];
  }
  for (int count : chosen) EXPECT_NEAR(count, 250, 70);
}

TEST(Split, ClassesKeepTheirRatio) {
  std::vector<std::int64_t> classes;
  for (int i = 0; i < 1000; ++i) classes.push_back(i % 7 == 0 ? -1 : i % 3);
  std::map<std::int64_t, int> sizes;
  for (std::int64_t one : classes) ++sizes[one];
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<std::uint64_t> counts{800, 200};
    const Parts parts = split(counts, seed, classes);
    EXPECT_EQ(parts[0].size(), 800u);
    EXPECT_EQ(sorted_union(parts).size(), 1000u);
    std::map<std::int64_t, int> held;
    for (std::uint64_t sample : parts[1]) ++held[classes[sample]];
    for (const auto& [one, size] : sizes) EXPECT_NEAR(held[one], size * 0.2, 1.0) << "class " << one;
  }
}

}  // namespace
}  // namespace feedline::plan
