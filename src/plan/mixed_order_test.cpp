// SPDX-License-Identifier: Apache-2.0
#include "plan/mixed_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace feedline::plan {
namespace {

std::shared_ptr<const Mixture> mixture_of(std::vector<Part> parts, std::uint64_t samples) {
  return std::make_shared<const Mixture>(Mixture{std::move(parts), samples});
}

std::size_t part_of(const Mixture& mixture, std::uint64_t sample) {
  std::size_t part = 0;
  for (; sample >= mixture.parts[part].size; ++part) sample -= mixture.parts[part].size;
  return part;
}

std::vector<OrderedSample> placed_by(const Order& order) {
  std::vector<OrderedSample> all;
  for (std::uint64_t i = 0; i < order.size(); ++i) all.push_back(order.at(i));
  return all;
}

TEST(MixedOrder, BySizeIsEverySampleOnceAnEpoch) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<Part> parts(1 + random() % 5);
    std::uint64_t total = 0;
    for (Part& part : parts) {
      part.size = 1 + random() % 400;
      part.weight = static_cast<double>(part.size);
      total += part.size;
    }
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<bool> seen(total);
      for (const OrderedSample placed :
           placed_by(MixedOrder(mixture_of(parts, total), trial % 2 == 0, random(), epoch))) {
        ASSERT_FALSE(seen[placed.sample]);
        seen[placed.sample] = true;
        ASSERT_EQ(placed.draw, placed.sample);
      }
    }
  }
}

// Without shuffling, the weights hold for every prefix; with shuffling, at the end of every block.
TEST(MixedOrder, KeepsToTheWeightsAllTheWay) {
  const std::vector<std::vector<double>> weightings{{0.7, 0.3}, {1, 1, 1}, {0.01, 5, 0.5, 2}, {1e-6, 1}};
  for (const auto& weights : weightings) {
    std::vector<Part> parts;
    double sum = 0;
    for (const double weight : weights) {
      parts.push_back({1000, weight});
      sum += weight;
    }
    const auto mixture = mixture_of(parts, 20000);
    for (const bool shuffle : {false, true}) {
      std::vector<double> count(parts.size());
      const auto all = placed_by(MixedOrder(mixture, shuffle, 3, 0));
      for (std::size_t i = 0; i < all.size(); ++i) {
        ++count[part_of(*mixture, all[i].sample)];
        if (shuffle && (i + 1) % 4096 != 0 && i + 1 != all.size()) continue;
        for (std::size_t part = 0; part < parts.size(); ++part)
          ASSERT_NEAR(count[part], static_cast<double>(i + 1) * weights[part] / sum, static_cast<double>(part) + 1)
              << "part " << part << " of " << i + 1;
      }
    }
  }
}

TEST(MixedOrder, UnshuffledPartsComeInTheirOwnOrder) {
  const auto mixture = mixture_of({{7, 2}, {50, 1}}, 60);
  std::map<std::size_t, std::vector<std::uint64_t>> seen;
  for (const OrderedSample placed : placed_by(MixedOrder(mixture, false, 1, 0)))
    seen[part_of(*mixture, placed.sample)].push_back(placed.sample);
  for (std::size_t i = 0; i < seen[0].size(); ++i) EXPECT_EQ(seen[0][i], i % 7);
  for (std::size_t i = 0; i < seen[1].size(); ++i) EXPECT_EQ(seen[1][i], 7 + i);
}

// The passes over a part continue across epochs: between two uses of a sample, all other samples of its part are used.
TEST(MixedOrder, NoSampleComesAgainBeforeItsPartIsThrough) {
  const auto mixture = mixture_of({{10, 3}, {1000, 1}}, 57);
  std::vector<int> count(1010);
  for (std::uint64_t epoch = 0; epoch < 30; ++epoch) {
    for (const OrderedSample placed : placed_by(MixedOrder(mixture, true, 1, epoch))) ++count[placed.sample];
    // between epochs; within one, the blocks' permutation interleaves passes
    const auto [least, most] = std::minmax_element(count.begin(), count.begin() + 10);
    EXPECT_LE(*most - *least, 1) << "after epoch " << epoch;
    const auto [large_least, large_most] = std::minmax_element(count.begin() + 10, count.end());
    EXPECT_LE(*large_most - *large_least, 1);
  }
}

TEST(MixedOrder, ASampleThatComesAgainIsDrawnAgain) {
  const auto mixture = mixture_of({{3, 1}, {100, 1}}, 100);
  for (const std::uint64_t epoch : {0u, 1u, 7u}) {
    std::set<std::uint64_t> draws;
    for (const OrderedSample placed : placed_by(MixedOrder(mixture, true, 1, epoch)))
      EXPECT_TRUE(draws.insert(placed.draw).second) << "epoch " << epoch;
  }
}

TEST(MixedOrder, EpochsEndWithTheFirstOrTheLastPart) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Part> parts(1 + random() % 4);
    for (Part& part : parts) part = {1 + random() % 90, 0.1 + static_cast<double>(random() % 50)};
    const auto used_up = [&](std::uint64_t positions) {
      std::vector<bool> over;
      for (std::size_t i = 0; i < parts.size(); ++i)
        over.push_back(count_of_part(parts, i, positions) >= parts[i].size);
      return over;
    };
    const auto repeats = [&](std::uint64_t positions) {
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (count_of_part(parts, i, positions) > parts[i].size) return true;
      return false;
    };
    const std::uint64_t first = positions_until_first(parts);
    EXPECT_FALSE(repeats(first));
    EXPECT_TRUE(repeats(first + 1));
    const std::uint64_t last = positions_until_last(parts);
    EXPECT_EQ(std::ranges::count(used_up(last), false), 0);
    EXPECT_GT(std::ranges::count(used_up(last - 1), false), 0);
  }
}

TEST(MixedOrder, WeightsOfZeroAndOneExtremeAnother) {
  const auto zeros = mixture_of({{5, 0}, {6, 2}, {7, 0}, {8, 0}}, 40);
  for (const bool shuffle : {false, true})
    for (const OrderedSample placed : placed_by(MixedOrder(zeros, shuffle, 1, 2)))
      EXPECT_EQ(part_of(*zeros, placed.sample), 1u);
  EXPECT_EQ(positions_until_first(zeros->parts), 6u);
  EXPECT_EQ(positions_until_last(zeros->parts), 6u);
  EXPECT_GT(positions_until_last({{1, 1e-300}, {1, 1}}), kMostPositions);
}

// With shuffling, the part of a row does not predict the part of the next row: the counts of pairs match independent
// draws.
TEST(MixedOrder, PartsAreMixedLikeDraws) {
  const auto mixture = mixture_of({{100000, 1}, {100000, 1}}, 100000);
  const MixedOrder order(mixture, true, 9, 0);
  double same = 0;
  std::size_t before = part_of(*mixture, order.at(0).sample);
  for (std::uint64_t i = 1; i < order.size(); ++i) {
    const std::size_t part = part_of(*mixture, order.at(i).sample);
    same += part == before;
    before = part;
  }
  EXPECT_NEAR(same / 99999, 0.5, 0.01);  // 6 standard deviations
}

TEST(MixedOrder, KeepsItsValuesOnEveryMachine) {
  const MixedOrder order(mixture_of({{10, 0.3}, {20, 0.7}}, 30), true, 42, 3);
  std::vector<std::uint64_t> first;
  for (std::uint64_t i = 0; i < 8; ++i) first.push_back(order.at(i).sample);
  // golden values: changing them breaks every saved state
  EXPECT_EQ(first, (std::vector<std::uint64_t>{1, 8, 13, 11, 2, 26, 8, 18}));
}

}  // namespace
}  // namespace feedline::plan
