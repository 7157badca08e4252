// SPDX-License-Identifier: Apache-2.0

// Compares distributions with an independent implementation of torchvision's rules that uses std::mt19937, by
// two-sample tests with a fixed seed and 20,000 draws each.

#include "transform/augment/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace feedline::transform {
namespace {

constexpr std::uint64_t kDraws = 20'000;
// The limit of the two-sample Kolmogorov-Smirnov statistic that random draws exceed once in 1,000 times: 1.949 * sqrt(2
// / n).
const double kKsLimit = 1.949 * std::sqrt(2.0 / static_cast<double>(kDraws));

double ks_distance(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double distance = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= value) ++i;
    while (j < b.size() && b[j] <= value) ++j;
    distance = std::max(distance, std::fabs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                            static_cast<double>(j) / static_cast<double>(b.size())));
  }
  return distance;
}

// Returns the chi-square statistic of counts that should be equal; its mean is cells - 1, and its standard deviation
// sqrt(2 (cells - 1)).
template <typename Counts>
double chi_square_deviations(const Counts& counts, std::size_t cells) {
  const double expected = static_cast<double>(kDraws) / static_cast<double>(cells);
  double sum = static_cast<double>(cells - counts.size()) * expected;  // cells never hit
  for (const auto& [cell, count] : counts) sum += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(cells) - 1;
  return (sum - freedom) / std::sqrt(2 * freedom);
}

struct Plain {
  std::mt19937 random{42};
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

  Box resized_crop(Size image, Range scale, Range ratio) {
    for (int i = 0; i < 10; ++i) {
      const double area = uniform(scale.low, scale.high) * image.height * image.width;
      const double aspect = std::exp(uniform(std::log(ratio.low), std::log(ratio.high)));
      const auto w = std::lrint(std::sqrt(area * aspect)), h = std::lrint(std::sqrt(area / aspect));
      if (w < 1 || h < 1 || w > image.width || h > image.height) continue;
      const int width = static_cast<int>(w), height = static_cast<int>(h);
      return {integer(0, image.width - width), integer(0, image.height - height), width, height};
    }
    int width = image.width, height = image.height;
    const double shape = 1.0 * image.width / image.height;
    if (shape < ratio.low) height = static_cast<int>(std::lrint(width / ratio.low));
    if (shape > ratio.high) width = static_cast<int>(std::lrint(height * ratio.high));
    return {(image.width - width) / 2, (image.height - height) / 2, width, height};
  }
};

void expect_same_boxes(Size image, Range scale, Range ratio) {
  std::array<std::vector<double>, 6> ours, theirs;
  const auto add = [](const Box& box, std::array<std::vector<double>, 6>& to) {
    const double values[] = {1.0 * box.left,
                             1.0 * box.top,
                             1.0 * box.width,
                             1.0 * box.height,
                             1.0 * box.width * box.height,
                             1.0 * box.width / box.height};
    for (std::size_t i = 0; i < 6; ++i) to[i].push_back(values[i]);
  };
  Plain plain;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Random random({.seed = 7, .epoch = 0, .sample = i}, 0);
    const Box box = draw_resized_crop(image, scale, ratio, random);
    ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0);
    ASSERT_TRUE(box.left + box.width <= image.width && box.top + box.height <= image.height);
    add(box, ours);
    add(plain.resized_crop(image, scale, ratio), theirs);
  }
  for (std::size_t i = 0; i < 6; ++i) EXPECT_LT(ks_distance(ours[i], theirs[i]), kKsLimit) << "quantity " << i;
}

TEST(Sampling, ResizedCropHasTorchvisionsDistribution) {
  expect_same_boxes({375, 500}, {0.08, 1}, {3.0 / 4, 4.0 / 3});
  expect_same_boxes({500, 375}, {0.5, 1}, {0.5, 2});
  expect_same_boxes({40, 300}, {0.3, 1}, {3.0 / 4, 4.0 / 3});  // most tries fail, so the fallback is common
  expect_same_boxes({7, 5}, {0.08, 1}, {3.0 / 4, 4.0 / 3});
}

TEST(Sampling, ResizedCropFallsBackToTheLargestCentralCrop) {
  base::Random random({}, 0);
  const Range whole{1, 1}, ratio{3.0 / 4, 4.0 / 3};
  EXPECT_EQ(draw_resized_crop({1000, 10}, whole, ratio, random), (Box{0, 493, 10, 13}));
  EXPECT_EQ(draw_resized_crop({10, 1000}, whole, ratio, random), (Box{493, 0, 13, 10}));
  EXPECT_EQ(draw_resized_crop({10, 12}, {4, 4}, ratio, random), (Box{0, 0, 12, 10}));
  EXPECT_EQ(draw_resized_crop({1, 1}, whole, {3, 4}, random), (Box{0, 0, 1, 1}));  // not an empty crop
}

TEST(Sampling, CropIsUniformOverPositions) {
  std::map<std::pair<int, int>, double> counts;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Random random({.seed = 3, .epoch = 1, .sample = i}, 4);
    const Box box = draw_crop({13, 15}, {7, 5}, random);
    ASSERT_TRUE(box.width == 5 && box.height == 7 && box.left >= 0 && box.left <= 10 && box.top >= 0 && box.top <= 6);
    ++counts[{box.left, box.top}];
  }
  EXPECT_LT(std::fabs(chi_square_deviations(counts, 77)), 4);
}

TEST(Sampling, CoinsLandAsOftenAsAsked) {
  for (const double p : {0.0, 0.1, 0.5, 1.0}) {
    double heads = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      base::Random random({.seed = 3, .epoch = 1, .sample = i}, 1);
      heads += draw_coin(p, random);
    }
    EXPECT_LE(std::fabs(heads - p * kDraws), 4 * std::sqrt(p * (1 - p) * kDraws)) << p;
  }
}

TEST(Sampling, JitterDrawsEveryOrderAndEachFactorUniformly) {
  std::map<std::array<int, 4>, double> orders;
  std::array<std::vector<double>, 4> ours, theirs;
  Plain plain;
  const op::ColorJitter jitter{{0.6, 1.4}, {0, 3}, {1, 1.2}, {-0.5, 0.1}};
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Random random({.seed = 5, .epoch = 0, .sample = i}, 2);
    const JitterDrawing drawn = draw_jitter(jitter, random);
    ++orders[drawn.order];
    const std::optional<double> factors[] = {drawn.brightness, drawn.contrast, drawn.saturation, drawn.hue};
    const Range ranges[] = {jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue};
    for (std::size_t f = 0; f < 4; ++f) {
      ours[f].push_back(factors[f].value());
      theirs[f].push_back(plain.uniform(ranges[f].low, ranges[f].high));
    }
  }
  EXPECT_LT(std::fabs(chi_square_deviations(orders, 24)), 4);
  for (std::size_t f = 0; f < 4; ++f) EXPECT_LT(ks_distance(ours[f], theirs[f]), kKsLimit) << f;
}

TEST(Sampling, JitterLeavesNeutralFactorsAlone) {
  base::Random random({}, 0);
  const JitterDrawing drawn = draw_jitter({{1, 1}, {0.5, 0.5}, {1, 1}, {0, 0}}, random);
  EXPECT_FALSE(drawn.brightness || drawn.saturation || drawn.hue);
  EXPECT_EQ(drawn.contrast, 0.5);
}

TEST(Sampling, ResizeKeepsTheAspectRatioByTruncation) {
  const auto check = [](Size image, int size, std::optional<int> max_size, Size expected) {
    const Size out = resized_size(image, {{size, 0}, max_size});
    EXPECT_EQ(out.height, expected.height);
    EXPECT_EQ(out.width, expected.width);
  };
  check({375, 500}, 256, {}, {256, 341});
  check({500, 375}, 256, {}, {341, 256});
  check({100, 100}, 33, {}, {33, 33});
  check({100, 1000}, 50, 200, {20, 200});
  check({1000, 100}, 50, 501, {500, 50});
  check({1, 5000}, 1, 2, {0, 2});  // int(2 * 1 / 5000): rejected by the caller
  const Size fixed = resized_size({5, 9}, {{3, 4}});
  EXPECT_EQ(fixed.height, 3);
  EXPECT_EQ(fixed.width, 4);
}

TEST(Sampling, CenterCropRoundsHalvesToEven) {
  const auto plan = [](Size image, Size crop) { return plan_center_crop(image, crop).box; };
  EXPECT_EQ(plan({7, 9}, {4, 4}), (Box{2, 2, 4, 4}));                // 2.5 and 1.5: both 2
  EXPECT_EQ(plan({256, 341}, {224, 224}), (Box{58, 16, 224, 224}));  // 58.5
  const CenterCropPlan pads = plan_center_crop({3, 10}, {6, 5});
  EXPECT_EQ(pads.padding.top, 1);
  EXPECT_EQ(pads.padding.bottom, 2);
  EXPECT_EQ(pads.padding.left + pads.padding.right, 0);
  EXPECT_EQ(pads.box, (Box{2, 0, 5, 6}));
}

TEST(Sampling, RandomCropPadsBothSidesWhereNeeded) {
  const op::RandomCrop crop{{32, 32}, {1, 2, 3, 4}, true};
  const RandomCropPadding plan = plan_random_crop_padding({20, 40}, crop);
  EXPECT_EQ(plan.always.bottom, 4);
  EXPECT_FALSE(any(plan.width_needed));
  EXPECT_EQ(plan.height_needed.top, 6);  // 32 - (20 + 2 + 4), above and below
  EXPECT_EQ(plan.height_needed.bottom, 6);
}

}  // namespace
}  // namespace feedline::transform
