// SPDX-License-Identifier: Apache-2.0
#include "transform/mixup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "feedline/mix_rows.h"
#include "transform/kernels/pointwise.h"

namespace feedline::transform {
namespace {

constexpr int kDraws = 20'000;

base::Random random_of(std::uint64_t number) { return {{20261123, 0, number}, 0}; }

// Computes the regularized incomplete beta function by its continued fraction (Abramowitz and Stegun, 26.5.8).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = 1e-300;
  const auto nonzero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), sum = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d), c = nonzero(1 + even / c), sum *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d), c = nonzero(1 + odd / c), sum *= c * d;
    if (std::abs(c * d - 1) < 1e-13) break;
  }
  return sum;
}

double beta_below(double x, double alpha) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(2 * alpha) - 2 * std::lgamma(alpha) + alpha * std::log(x * (1 - x)));
  return x < 0.5 ? front * beta_fraction(x, alpha, alpha) / alpha
                 : 1 - front * beta_fraction(1 - x, alpha, alpha) / alpha;
}

TEST(DrawBeta, TheDistributionThatItIsComparedWithIsRight) {
  for (const double x : {0.01, 0.2, 0.5, 0.77, 0.999}) {
    EXPECT_NEAR(beta_below(x, 1), x, 1e-9);
    EXPECT_NEAR(beta_below(x, 2), x * x * (3 - 2 * x), 1e-9);
    EXPECT_NEAR(beta_below(x, 0.5), 2 / std::acos(-1.0) * std::asin(std::sqrt(x)), 1e-9);
  }
}

// Kolmogorov-Smirnov test. A random deviation exceeds the bound once in 10,000 times; the draws are the same in every
// run. Compares only values that a double can distinguish from 1.
double distance(std::vector<double> draws, const std::function<double(double)>& below) {
  std::ranges::sort(draws);
  const auto count = static_cast<double>(draws.size());
  double most = 0;
  for (std::size_t i = 0; i < draws.size() && draws[i] < 0.999; ++i) {
    const double expected = below(draws[i]);
    most = std::max({most, static_cast<double>(i + 1) / count - expected, expected - static_cast<double>(i) / count});
  }
  return most * std::sqrt(count);
}
constexpr double kMostDistance = 2.23;

TEST(DrawBeta, FollowsBetaForEveryAlpha) {
  for (const double alpha : {0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.001, 1.5, 2.0, 8.0, 100.0}) {
    std::vector<double> draws;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      base::Random random = random_of(i);
      draws.push_back(draw_beta(alpha, random));
      ASSERT_TRUE(draws.back() >= 0 && draws.back() <= 1) << alpha;
    }
    EXPECT_LT(distance(draws, [&](double x) { return beta_below(x, alpha); }), kMostDistance) << alpha;
  }
}

// Both ends of the range are equally likely, and values that underflow a double are expected.
TEST(DrawBeta, BearsTheSmallestAlphas) {
  int low = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    base::Random random = random_of(i);
    const double draw = draw_beta(1e-6, random);
    ASSERT_TRUE(draw < 1e-9 || draw > 1 - 1e-9) << draw;
    low += draw < 0.5;
  }
  EXPECT_NEAR(low, 1000, 4 * 23);
}

// ---- draws ----

TEST(DrawMix, MixesWithItsProbabilityAndSwitches) {
  const MixRules rules{.mixup = 1, .cutmix = 1, .probability = 0.7, .switch_probability = 0.3};
  int none = 0, pastes = 0;
  std::vector<double> shares;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Random random = random_of(i);
    const Mix mix = draw_mix(rules, {224, 224}, random);
    none += mix.kind == Mix::Kind::kNone;
    pastes += mix.kind == Mix::Kind::kPaste;
    if (mix.kind == Mix::Kind::kBlend) shares.push_back(mix.share);
  }
  const double sigma = std::sqrt(kDraws * 0.25);
  EXPECT_NEAR(none, kDraws * 0.3, 4 * sigma);
  EXPECT_NEAR(pastes, kDraws * 0.7 * 0.3, 4 * sigma);
  EXPECT_LT(distance(shares, [](double x) { return x; }), kMostDistance);
}

TEST(DrawMix, IsOneOfTheTwoWhereTheOtherHasNoAlpha) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    base::Random random = random_of(i), again = random_of(i);
    EXPECT_EQ(draw_mix({.mixup = 1}, {8, 8}, random).kind, Mix::Kind::kBlend);
    EXPECT_EQ(draw_mix({.cutmix = 1}, {8, 8}, again).kind, Mix::Kind::kPaste);
    EXPECT_EQ(draw_mix({.cutmix = 1, .probability = 0}, {8, 8}, again).kind, Mix::Kind::kNone);
  }
}

// With a large alpha, a box has half the height and width of the image, so it covers each column equally often.
TEST(DrawMix, PutsBoxesAroundEveryPixel) {
  const Size image{.height = 40, .width = 60};
  std::vector<double> columns(60), rows(40), widths;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    base::Random random = random_of(i);
    const Mix mix = draw_mix({.cutmix = 1e9}, image, random);
    const Box& box = mix.box;
    ASSERT_TRUE(box.left >= 0 && box.top >= 0 && box.left + box.width <= 60 && box.top + box.height <= 40);
    ASSERT_DOUBLE_EQ(mix.share, 1 - box.width * box.height / 2400.0);
    // half of sqrt(1 / 2): 21 columns and 14 rows on either side
    for (int x = box.left; x < box.left + box.width; ++x) ++columns[static_cast<std::size_t>(x)];
    for (int y = box.top; y < box.top + box.height; ++y) ++rows[static_cast<std::size_t>(y)];
  }
  const auto expect = [](const std::vector<double>& counts, int half) {
    const auto size = static_cast<int>(counts.size());
    for (int at = 0; at < size; ++at) {
      const int centres = std::min(at + half, size - 1) - std::max(at - half + 1, 0) + 1;
      const double share = static_cast<double>(centres) / size;
      EXPECT_NEAR(counts[static_cast<std::size_t>(at)], kDraws * share, 4 * std::sqrt(kDraws * share * (1 - share)) + 1)
          << at;
    }
  };
  expect(columns, 21);
  expect(rows, 14);
}

// The expected boxes were computed with torchvision's CutMix.make_params for these shares and centres (x, y), with 32
// rows and 48 columns.
TEST(PasteAround, IsTorchvisionsBox) {
  const Size image{.height = 32, .width = 48};
  EXPECT_EQ(paste_around(0.0, image, 24, 16).box, (Box{0, 0, 48, 32}));
  EXPECT_EQ(paste_around(0.0, image, 24, 16).share, 0.0);
  EXPECT_EQ(paste_around(0.75, image, 24, 16).box, (Box{12, 8, 24, 16}));
  EXPECT_EQ(paste_around(0.75, image, 24, 16).share, 0.75);
  EXPECT_EQ(paste_around(0.75, image, 0, 31).box, (Box{0, 23, 12, 9}));
  EXPECT_EQ(paste_around(0.75, image, 0, 31).share, 1.0 - 108.0 / 1536.0);
  EXPECT_EQ(paste_around(0.9, image, 47, 0).box, (Box{40, 0, 8, 5}));
  EXPECT_EQ(paste_around(1.0, image, 3, 3).box.width, 0);
  EXPECT_EQ(paste_around(1.0, image, 3, 3).share, 1.0);
}

// ---- mixed rows ----

struct Batch {
  MixedRows rows;
  std::size_t count;
  std::vector<float> numbers;

  Batch(MixedRows shape, std::size_t count_in, std::uint32_t seed) : rows(shape), count(count_in) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    numbers.resize(count * rows.elements());
    for (float& number : numbers) number = rows.dtype == DType::kFloat32 ? normal(random) : half(normal(random));
  }
  static float half(float value) { return from_half(to_half(value)); }

  // Applies `mix` to a copy of the rows in the batch's element type.
  template <typename Do>
  std::vector<float> mixed(Do mix) {
    std::vector<float> wide = numbers;
    std::vector<std::uint16_t> narrow;
    for (const float number : numbers) narrow.push_back(to_half(number));
    const bool is_wide = rows.dtype == DType::kFloat32;
    rows.data = is_wide ? reinterpret_cast<std::byte*>(wide.data()) : reinterpret_cast<std::byte*>(narrow.data());
    mix(rows);
    for (std::size_t i = 0; !is_wide && i < wide.size(); ++i) wide[i] = from_half(narrow[i]);
    return wide;
  }

  float rounded(float value) const { return rows.dtype == DType::kFloat32 ? value : half(value); }
  bool is_inside(std::size_t element, const Box& box) const {
    const auto width = static_cast<std::size_t>(rows.image.width), height = static_cast<std::size_t>(rows.image.height);
    const std::size_t pixel =
        rows.layout == Layout::kNchw ? element % (width * height) : element / static_cast<std::size_t>(rows.channels);
    const auto x = static_cast<int>(pixel % width), y = static_cast<int>(pixel / width);
    return x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height;
  }
  // Returns the expected value of an element, computed from the element and the partner row's element.
  float expected(std::size_t row, std::size_t partner, std::size_t element, const Mix& mix) const {
    const float own = numbers[row * rows.elements() + element], other = numbers[partner * rows.elements() + element];
    if (mix.kind == Mix::Kind::kPaste) return is_inside(element, mix.box) ? other : own;
    if (mix.kind == Mix::Kind::kNone) return own;
    return rounded(rounded(own * static_cast<float>(mix.share)) + rounded(other * static_cast<float>(1 - mix.share)));
  }
};

const Mix kBlend{Mix::Kind::kBlend, static_cast<double>(0.3f), {}};
const Mix kBox{Mix::Kind::kPaste, 0.5, {5, 2, 9, 11}};
const Mix kEdges{Mix::Kind::kPaste, 0.5, {0, 0, 61, 3}};

// Includes rows that are shorter than a chunk, and rows of several chunks.
std::vector<MixedRows> shapes() {
  std::vector<MixedRows> all;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16})
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc})
      for (const Size size : {Size{13, 61}, Size{67, 71}})
        for (const int channels : {1, 3}) all.push_back({nullptr, dtype, size, channels, layout});
  return all;
}

TEST(MixRows, RollMixesEveryRowWithTheOneBefore) {
  for (const MixedRows& shape : shapes())
    for (const Mix& mix : {kBlend, kBox, kEdges, Mix()})
      for (const std::size_t count : {2, 5}) {
        Batch batch(shape, count, 7);
        const auto got = batch.mixed([&](const MixedRows& rows) { mix_rolled(rows, count, mix); });
        for (std::size_t row = 0; row < count; ++row)
          for (std::size_t i = 0; i < shape.elements(); ++i)
            ASSERT_EQ(got[row * shape.elements() + i], batch.expected(row, (row + count - 1) % count, i, mix))
                << row << " " << i;
      }
}

TEST(MixRows, BothGetWhatTheOtherWas) {
  for (const MixedRows& shape : shapes())
    for (const Mix& first : {kBlend, kBox, Mix()})
      for (const Mix& second : {kBlend, kEdges, Mix()}) {
        Batch batch(shape, 3, 8);
        const auto got = batch.mixed([&](const MixedRows& rows) { mix_both(rows, 0, 2, first, second); });
        for (std::size_t i = 0; i < shape.elements(); ++i) {
          ASSERT_EQ(got[i], batch.expected(0, 2, i, first)) << i;
          ASSERT_EQ(got[shape.elements() + i], batch.numbers[shape.elements() + i]);
          ASSERT_EQ(got[2 * shape.elements() + i], batch.expected(2, 0, i, second)) << i;
        }
      }
}

TEST(MixRows, OneLeavesTheOther) {
  for (const MixedRows& shape : shapes())
    for (const Mix& mix : {kBlend, kBox, Mix()}) {
      Batch batch(shape, 2, 9);
      const auto got = batch.mixed([&](const MixedRows& rows) { mix_one(rows, 1, 0, mix); });
      for (std::size_t i = 0; i < shape.elements(); ++i) {
        ASSERT_EQ(got[i], batch.numbers[i]);
        ASSERT_EQ(got[shape.elements() + i], batch.expected(1, 0, i, mix));
      }
    }
}

// timm's label smoothing: 1 - s + s / n for the class, and s / n for all others, mixed by the share.
TEST(FillTarget, MixesSmoothedClasses) {
  std::vector<float> target(5, -1);
  fill_target(target, 2, 4, 0.75, 0);
  EXPECT_EQ(target, (std::vector<float>{0, 0, 0.75, 0, 0.25}));
  fill_target(target, 3, 3, 0.75, 0);
  EXPECT_EQ(target, (std::vector<float>{0, 0, 0, 1, 0}));
  fill_target(target, 0, 1, 0.75, 0.1);
  const auto low = static_cast<float>(0.1 / 5), high = static_cast<float>(1 - 0.1 + 0.1 / 5);
  EXPECT_EQ(target[0], high * 0.75f + low * 0.25f);
  EXPECT_EQ(target[1], low * 0.75f + high * 0.25f);
  EXPECT_EQ(target[4], low * 0.75f + low * 0.25f);
}

// ---- mixing of a batch that the caller owns ----

TEST(MixRows, MixesEveryRowWithTheOneBefore) {
  std::vector<float> values{1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400};  // 3 rows of 2 x 2
  const ImageRows images{values.data(), 3, 1, {2, 2}};
  ASSERT_TRUE(mix_up(images, 0.75));
  EXPECT_EQ(values, (std::vector<float>{25.75, 51.5, 77.25, 103, 7.75, 15.5, 23.25, 31, 77.5, 155, 232.5, 310}));
  values = {1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400};
  ASSERT_TRUE(cut_mix(images, {1, 0, 1, 2}));
  EXPECT_EQ(values, (std::vector<float>{1, 200, 3, 400, 10, 2, 30, 4, 100, 20, 300, 40}));
}

TEST(MixRows, RefusesOneRowAndABoxOutside) {
  std::vector<float> values(8, 1.0F);
  EXPECT_FALSE(mix_up({values.data(), 1, 1, {2, 4}}, 0.5));
  EXPECT_FALSE(cut_mix({values.data(), 1, 1, {2, 4}}, {0, 0, 1, 1}));
  for (const Box box : {Box{-1, 0, 1, 1}, Box{0, 0, 3, 1}, Box{1, 0, 2, 1}, Box{0, 1, 1, 2}, Box{0, 0, -1, 1}})
    EXPECT_FALSE(cut_mix({values.data(), 2, 1, {2, 2}}, box)) << box.left << ' ' << box.width;
  EXPECT_TRUE(cut_mix({values.data(), 2, 1, {2, 2}}, {2, 2, 0, 0}));
}

}  // namespace
}  // namespace feedline::transform
