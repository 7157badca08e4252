// SPDX-License-Identifier: Apache-2.0
#include "plan/sampled_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "plan/mixed_order.h"
#include "plan/mixture.h"

namespace feedline::plan {
namespace {

using Made = std::shared_ptr<const Sampling>;

std::vector<OrderedSample> placed_by(const Made& sampling, std::uint64_t seed, std::uint64_t epoch) {
  const auto order = make_sampled_order(sampling, seed, epoch);
  std::vector<OrderedSample> all;
  for (std::uint64_t i = 0; i < order->size(); ++i) all.push_back(order->at(i));
  return all;
}

TEST(SampledOrder, WeightsAreProbabilities) {
  const std::vector<double> weights = {0, 3, 0, 0, 1, 6, 0};
  const Made sampling = *Sampling::by_weight(weights);
  constexpr int kEpochs = 10'000;
  std::map<std::uint64_t, double> drawn;
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (const OrderedSample placed : placed_by(sampling, 1, epoch)) ++drawn[placed.sample];
  const double total = kEpochs * 7.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / 10, deviation = std::sqrt(total * share * (1 - share));
    EXPECT_NEAR(drawn[i], total * share, 5 * deviation);
  }
}

TEST(SampledOrder, DrawsOfAnEpochDiffer) {
  std::set<std::uint64_t> draws;
  for (const OrderedSample placed : placed_by(*Sampling::by_weight({1, 0, 0, 0}), 0, 0)) {
    EXPECT_EQ(placed.sample, 0u);
    EXPECT_TRUE(draws.insert(placed.draw).second);
  }
  draws.clear();
  for (const OrderedSample placed : placed_by(*Sampling::in_order({2, 1, 2, 2, 0, 1}, 3), 0, 0))
    EXPECT_TRUE(draws.insert(placed.draw).second);
}

TEST(SampledOrder, GivenIndicesWithoutRepetitionDrawAsUsual) {
  const auto placed = placed_by(*Sampling::in_order({4, 0, 2}, 5), 3, 9);
  EXPECT_EQ(placed, (std::vector<OrderedSample>{{4, 4}, {0, 0}, {2, 2}}));
}

TEST(SampledOrder, UndersamplesWithoutReplacement) {
  const std::vector<std::int64_t> classes = {7, -1, 7, 7, 0, 7, -1, 0, 7, 7, -1};
  const Made sampling = *Sampling::undersample(classes);
  EXPECT_EQ(sampling->positions(), 6u);
  std::set<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    std::map<std::int64_t, std::set<std::uint64_t>> by_class;
    for (const OrderedSample placed : placed_by(sampling, 2, epoch)) {
      EXPECT_TRUE(by_class[classes[placed.sample]].insert(placed.sample).second);
      EXPECT_EQ(placed.draw, placed.sample);
      seen.insert(placed.sample);
    }
    for (const auto& [number, samples] : by_class) EXPECT_EQ(samples.size(), 2u);
  }
  EXPECT_EQ(seen.size(), classes.size());
}

TEST(SampledOrder, FingerprintsDependOnContents) {
  std::set<std::uint64_t> all;
  for (const Made& made : {*Sampling::by_weight({1, 2}), *Sampling::by_weight({2, 1}), *Sampling::by_weight({2, 4}),
                           *Sampling::undersample({1, 2}), *Sampling::in_order({1, 2}, 3),
                           *Sampling::in_order({2, 1}, 3), *Sampling::in_order({1, 2, 0}, 3)})
    EXPECT_TRUE(all.insert(made->fingerprint()).second);
  EXPECT_EQ((*Sampling::in_order({1}, 3, 5))->fingerprint(), 5u);
  EXPECT_FALSE(all.contains(0));
}

TEST(SampledOrder, RefusesWrongValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& weights : {std::vector<double>{}, {0, 0}, {1, -1}, {1, nan}, {1.7e308, 1.7e308}})
    EXPECT_FALSE(Sampling::by_weight(weights));
  EXPECT_FALSE(Sampling::undersample({}));
  EXPECT_FALSE(Sampling::in_order({}, 3));
  EXPECT_FALSE(Sampling::in_order({0, 3}, 3));
}

TEST(MixedOrder, PassesContinueWhenWeightsChange) {
  auto mixture = *make_mixture({20, 60}, {.weights = {1, 1}, .until = MixUntil::kSamples, .samples = 16});
  std::map<std::uint64_t, int> times;
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    if (epoch == 2) mixture = *reweighted(*mixture, {1, 3}, epoch);
    if (epoch == 4) mixture = *reweighted(*mixture, {0, 1}, epoch);
    const MixedOrder order(mixture, true, 3, epoch);
    for (std::uint64_t i = 0; i < order.size(); ++i) ++times[order.at(i).sample];
  }
  // 8 + 8 + 4 + 4 of the first dataset, 8 + 8 + 12 + 12 + 16 of the second
  EXPECT_EQ(used_before(*mixture, 5), (std::vector<std::uint64_t>{24, 56}));
  for (const auto& [sample, count] : times) EXPECT_LE(count, sample < 20 ? 2 : 1);
}

}  // namespace
}  // namespace feedline::plan
