// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>

namespace feedline::base {
namespace {

using Block = std::array<std::uint32_t, 4>;

// Known answers of philox4x32-10 from the Random123 distribution (kat_vectors).
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameKeyAndStreamDrawTheSame) {
  Random a({1, 2, 3}, 4), b({1, 2, 3}, 4);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), b.bits());
}

TEST(Random, EveryPartOfTheKeyMatters) {
  std::set<std::uint64_t> first;
  const auto add = [&first](SampleKey key, std::uint32_t stream) {
    Random random(key, stream);
    const std::uint64_t high = random.bits();
    first.insert((high << 32) | random.bits());
  };
  add({1, 2, 3}, 4);
  add({2, 1, 3}, 4);  // seed and epoch are not interchangeable
  add({1, 2, 4}, 3);  // nor sample and stream
  add({1, 3, 3}, 4);
  add({2, 2, 3}, 4);
  add({1, 2, 3 + (std::uint64_t{1} << 32)}, 4);
  EXPECT_EQ(first.size(), 6u);
}

TEST(Random, UniformFillsItsRangeEvenly) {
  constexpr int kBins = 20, kDraws = 100000;
  std::array<int, kBins> count{};
  Random random({7, 0, 0}, 0);
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++count[static_cast<std::size_t>(u * kBins)];
  }
  double chi_square = 0;
  for (const int n : count) chi_square += (n - kDraws / kBins) * (n - kDraws / kBins) / double{kDraws / kBins};
  EXPECT_LT(chi_square, 50);  // 19 degrees of freedom, 99.99 %: 49
}

TEST(Random, BelowIsEvenAndInRange) {
  std::array<int, 6> count{};
  Random random({8, 0, 0}, 0);
  for (int i = 0; i < 60000; ++i) ++count.at(random.below(6));
  for (const int n : count) EXPECT_NEAR(n, 10000, 500);  // five standard deviations
  EXPECT_EQ(random.below(1), 0u);
}

}  // namespace
}  // namespace feedline::base
