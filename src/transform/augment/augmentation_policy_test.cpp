// SPDX-License-Identifier: Apache-2.0

// Compares draws with the tables printed by torchvision and timm, and frequencies with those that their rules imply.

#include "transform/augment/augmentation_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>

namespace feedline::transform {
namespace {

using enum Augmentation;

constexpr Size kImage{375, 500};
constexpr int kDraws = 20'000;

using Draw = std::function<void(base::Random&, Augmentations&)>;

// Returns the draws for a number of samples.
std::vector<Augmentations> draws(const Draw& draw) {
  std::vector<Augmentations> all(kDraws);
  for (std::size_t i = 0; i < all.size(); ++i) {
    base::Random random({.seed = 7, .epoch = 0, .sample = i}, 0);
    draw(random, all[i]);
  }
  return all;
}

std::map<Augmentation, int> counts(const std::vector<Augmentations>& all) {
  std::map<Augmentation, int> counted;
  for (const Augmentations& sample : all)
    for (const DrawnAugmentation& drawn : sample) ++counted[drawn.augmentation];
  return counted;
}

// A random deviation exceeds the limit once in 15,000 times.
void expect_share(int count, int of, double share) {
  const double deviation = std::sqrt(of * share * (1 - share));
  EXPECT_NEAR(count, of * share, 4 * deviation + 1);
}

TEST(AugmentationLevel, BinsAreTorchvisions) {
  const Bins standard{AugmentationSpace::kStandard, 31}, wide{AugmentationSpace::kWide, 31},
      mix{AugmentationSpace::kMix, 10};
  EXPECT_NEAR(amount_at(kShearX, standard, 9, false, kImage), 0.09, 1e-6);
  EXPECT_NEAR(amount_at(kShearY, wide, 30, true, kImage), -0.99, 1e-6);
  EXPECT_EQ(amount_at(kTranslateX, standard, 9, false, kImage), 67);  // int(150 / 331 * 500 * 9 / 30)
  EXPECT_EQ(amount_at(kTranslateY, standard, 9, true, kImage), -50);  // of 375: truncated towards 0
  EXPECT_EQ(amount_at(kTranslateX, wide, 29, false, kImage), 30);     // int(32 * 29 / 30)
  EXPECT_EQ(amount_at(kTranslateX, wide, 15, false, kImage), 15);     // int(15.999999), from torch.linspace
  EXPECT_EQ(amount_at(kTranslateY, mix, 9, false, kImage), 125);
  EXPECT_NEAR(amount_at(kRotate, wide, 10, true, kImage), -45, 1e-5);
  EXPECT_NEAR(amount_at(kBrightness, standard, 9, true, kImage), 1 - 0.27, 1e-6);
  EXPECT_NEAR(amount_at(kSharpness, wide, 30, false, kImage), 1.99, 1e-6);
  EXPECT_NEAR(amount_at(kSolarize, standard, 9, true, kImage), 178.5, 1e-4);
  EXPECT_EQ(amount_at(kEqualize, standard, 9, true, kImage), 0);
  // 8 - round(i / (9 / 4)), half to even
  const double bits[] = {8, 8, 7, 7, 6, 6, 5, 5, 4, 4};
  for (int bin = 0; bin < 10; ++bin)
    EXPECT_EQ(amount_at(kPosterize, {AugmentationSpace::kStandard, 10}, bin, false, kImage), bits[bin]) << bin;
  EXPECT_EQ(amount_at(kPosterize, wide, 30, false, kImage), 2);
  EXPECT_EQ(amount_at(kPosterize, mix, 9, false, kImage), 0);
}

TEST(AugmentationLevel, V2HasThresholdsOfItsOwn) {
  // the first value that is inverted: ceil(255.0 * torch.linspace(1, 0, 31)[i]) and ceil(torch.linspace(255, 0,
  // 31)[i])
  constexpr int kOfV2[] = {255, 247, 239, 230, 222, 213, 205, 196, 188, 179, 170, 162, 153, 145, 136, 128,
                           120, 111, 103, 94,  86,  77,  69,  60,  52,  43,  35,  26,  18,  9,   0};
  constexpr int kDiffering[] = {2, 4, 6, 8, 16, 18, 20, 22, 24, 26, 28};
  for (int bin = 0; bin < 31; ++bin) {
    const auto ceiling = [&](TorchvisionVersion version) {
      return std::ceil(amount_at(kSolarize, {AugmentationSpace::kWide, 31, version}, bin, false, kImage));
    };
    EXPECT_EQ(ceiling(TorchvisionVersion::kV2), kOfV2[bin]) << bin;
    EXPECT_EQ(ceiling(TorchvisionVersion::kV1), kOfV2[bin] - std::ranges::count(kDiffering, bin)) << bin;
  }
}

TEST(AugmentationPolicy, TrivialAugmentDrawsEachOfFourteenOnceAndAnyBin) {
  const auto all =
      draws([](base::Random& random, Augmentations& drawn) { draw_trivial_augment_wide(31, kImage, random, drawn); });
  const auto counted = counts(all);
  EXPECT_EQ(counted.size(), 13u);  // identity appends nothing
  for (const auto& [augmentation, count] : counted) expect_share(count, kDraws, 1.0 / 14);
  std::map<double, int> rotations;
  int rotated = 0, negative = 0;
  for (const Augmentations& sample : all) {
    ASSERT_LE(sample.size(), 1u);
    if (sample.size() == 0 || sample[0].augmentation != kRotate) continue;
    ++rotated;
    negative += sample[0].amount < 0;
    ++rotations[std::round(std::fabs(sample[0].amount) / 4.5)];
  }
  EXPECT_EQ(rotations.size(), 31u);
  for (const auto& [bin, count] : rotations) expect_share(count, rotated, 1.0 / 31);
  expect_share(negative, rotated, 0.5 * 30 / 31);  // no amount is negative at bin 0
}

TEST(AugmentationPolicy, RandAugmentDrawsWithPuttingBackAtOneMagnitude) {
  const auto all =
      draws([](base::Random& random, Augmentations& drawn) { draw_rand_augment(3, 9, 31, kImage, random, drawn); });
  std::map<std::size_t, int> lengths;
  int same = 0;
  for (const Augmentations& sample : all) {
    ++lengths[sample.size()];
    if (sample.size() == 3) same += sample[0].augmentation == sample[1].augmentation;
    for (const DrawnAugmentation& drawn : sample)
      if (drawn.augmentation == kRotate) {
        EXPECT_NEAR(std::fabs(drawn.amount), 9, 1e-5);
      }
  }
  const double done = 13.0 / 14;
  expect_share(lengths[3], kDraws, done * done * done);
  expect_share(same, lengths[3], 1.0 / 13);
  for (const auto& [augmentation, count] : counts(all)) expect_share(count, 3 * kDraws, 1.0 / 14);
}

// Counted by hand in torchvision's table for CIFAR-10: four of the 25 sub-policies translate by rows, one of them
// twice.
TEST(AugmentationPolicy, AutoAugmentDoesWhatItsTableSays) {
  const auto all = draws([](base::Random& random, Augmentations& drawn) {
    draw_auto_augment(AutoAugmentPolicy::kCifar10, kImage, random, drawn);
  });
  const auto counted = counts(all);
  expect_share(counted.at(kTranslateY), 5 * kDraws, (0.7 + 0.4 + 0.9 + 0.7 + 0.7) / 25 / 5);
  expect_share(counted.at(kInvert), 3 * kDraws, (0.1 + 0.0 + 0.1) / 25 / 3);
  int shears = 0;
  for (const Augmentations& sample : all)
    for (const DrawnAugmentation& drawn : sample)
      if (drawn.augmentation == kShearY) {
        ++shears;
        const double share = std::fabs(drawn.amount) / 0.3 * 9;
        EXPECT_TRUE(std::fabs(share - 8) < 1e-4 || std::fabs(share - 7) < 1e-4) << drawn.amount;
      }
  expect_share(shears, kDraws, (0.5 + 0.2) / 25);
}

TEST(AugmentationPolicy, AugMixStaysBelowItsSeverity) {
  const auto all =
      draws([](base::Random& random, Augmentations& drawn) { draw_aug_mix_chain(3, 2, false, kImage, random, drawn); });
  const auto counted = counts(all);
  EXPECT_EQ(counted.size(), 9u);
  for (const auto& [augmentation, count] : counted) expect_share(count, 2 * kDraws, 1.0 / 9);
  for (const Augmentations& sample : all)
    for (const DrawnAugmentation& drawn : sample)
      if (drawn.augmentation == kRotate) {
        EXPECT_LE(std::fabs(drawn.amount), 30.0 * 2 / 9 + 1e-4);
      }
}

TEST(TimmPolicy, RandAugmentWithNoiseAndIncreasingLevels) {
  const auto policy = TimmPolicy::parse("rand-m9-n3-p0.25-mstd0.5-inc1");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->entries().size(), 15u);
  const auto all = draws([&](base::Random& random, Augmentations& drawn) { policy->draw(kImage, random, drawn); });
  const auto counted = counts(all);
  EXPECT_EQ(counted.size(), 15u);
  for (const auto& [augmentation, count] : counted) expect_share(count, 3 * kDraws, 0.25 / 15);

  double sum = 0, squares = 0;
  int rotated = 0, highest = 0;
  for (const Augmentations& sample : all)
    for (const DrawnAugmentation& drawn : sample) switch (drawn.augmentation) {
        case kRotate: {
          const double level = std::fabs(drawn.amount) / 3;
          ++rotated;
          highest += level == 10;
          sum += level;
          squares += level * level;
          EXPECT_LE(level, 10);
          break;
        }
        case kPosterize:  // 4 - int(level / 10 * 4), for levels around 9
          EXPECT_TRUE(drawn.amount == 0 || drawn.amount == 1 || drawn.amount == 2) << drawn.amount;
          break;
        case kBrightness:
          EXPECT_GE(drawn.amount, 0.1);
          break;
        default:
          break;
      }
  const double mean = sum / rotated;
  EXPECT_NEAR(mean, 9, 0.08);  // clamping at 10 lowers the mean by 0.004
  EXPECT_NEAR(std::sqrt(squares / rotated - mean * mean), 0.5, 0.06);
  expect_share(highest, rotated, 0.02275);  // above two deviations
}

TEST(TimmPolicy, PlainLevelsAndUniformNoise) {
  const auto policy = TimmPolicy::parse("rand-m8-mstd101");
  ASSERT_TRUE(policy);
  const auto all = draws([&](base::Random& random, Augmentations& drawn) { policy->draw(kImage, random, drawn); });
  double low = 1, high = 0;
  for (const Augmentations& sample : all)
    for (const DrawnAugmentation& drawn : sample) {
      if (drawn.augmentation == kTranslateX) {
        EXPECT_LE(std::fabs(drawn.amount), 0.8 * 0.45 * 500);
      }
      if (drawn.augmentation != kColor) continue;
      low = std::min(low, drawn.amount);
      high = std::max(high, drawn.amount);
    }
  EXPECT_NEAR(low, 0.1, 0.01);
  EXPECT_NEAR(high, 0.1 + 1.8 * 0.8, 0.01);
}

TEST(TimmPolicy, WeightedChoicesAreNotRepeated) {
  const auto policy = TimmPolicy::parse("rand-n2-p1-tweights");
  ASSERT_TRUE(policy);
  const auto all = draws([&](base::Random& random, Augmentations& drawn) { policy->draw(kImage, random, drawn); });
  int first_rotated = 0;
  for (const Augmentations& sample : all) {
    ASSERT_EQ(sample.size(), 2u);
    EXPECT_NE(sample[0].augmentation, sample[1].augmentation);
    first_rotated += sample[0].augmentation == kRotate;
  }
  expect_share(first_rotated, kDraws, 3 / 10.1);  // the sum of the weights
}

TEST(TimmPolicy, AutoAugmentVariantsDifferInPosterize) {
  const auto bits = [](const char* config) {
    const auto policy = TimmPolicy::parse(config);
    EXPECT_TRUE(policy);
    std::map<double, int> counted;
    for (const Augmentations& sample :
         draws([&](base::Random&random, Augmentations&drawn) { policy->draw(kImage, random, drawn); }))
      for (const DrawnAugmentation& drawn : sample)
        if (drawn.augmentation == kPosterize) ++counted[drawn.amount];
    std::string text;
    for (const auto& [bit, count] : counted) text += std::to_string(static_cast<int>(bit)) + " ";
    return text;
  };
  EXPECT_EQ(bits("original"), "6 7 ");   // int(level / 10 * 4) + 4 for 5, 6, 7, 8
  EXPECT_EQ(bits("originalr"), "1 2 ");  // 4 - int(level / 10 * 4)
  EXPECT_EQ(bits("v0"), "0 2 ");
  EXPECT_EQ(bits("v0r"), "2 4 ");
}

TEST(TimmPolicy, ThreeAugmentTakesOneOfThree) {
  const auto policy = TimmPolicy::parse("3a");
  ASSERT_TRUE(policy);
  const auto all = draws([&](base::Random& random, Augmentations& drawn) { policy->draw(kImage, random, drawn); });
  std::map<Augmentation, int> counted = counts(all);
  ASSERT_EQ(counted.size(), 3u);
  for (const auto& [augmentation, count] : counted) expect_share(count, kDraws, 1.0 / 3);
  double least = 9, most = 0;
  for (const Augmentations& sample : all) {
    ASSERT_EQ(sample.size(), 1u);
    if (sample[0].augmentation == kSolarize) EXPECT_EQ(sample[0].amount, 128);
    if (sample[0].augmentation == kColor) EXPECT_EQ(sample[0].amount, 0);  // no colour remains
    if (sample[0].augmentation != kGaussianBlur) continue;
    least = std::min(least, sample[0].amount);
    most = std::max(most, sample[0].amount);
  }
  EXPECT_GE(least, 0.1);
  EXPECT_LT(least, 0.11);
  EXPECT_GT(most, 1.99);
  EXPECT_LE(most, 2);
}

TEST(TimmPolicy, ThreeAugmentsSetsHaveTimmsWeights) {
  const auto plain = TimmPolicy::parse("rand-m5-t3a"), weighted = TimmPolicy::parse("rand-m5-n1-p1-t3aw");
  ASSERT_TRUE(plain && weighted);
  ASSERT_EQ(plain->entries().size(), 3u);
  ASSERT_EQ(weighted->entries().size(), 14u);
  double total = 0;
  for (const TimmPolicy::Entry& entry : weighted->entries()) total += entry.weight;
  EXPECT_EQ(total, 33);
  const auto all = draws([&](base::Random& random, Augmentations& drawn) { weighted->draw(kImage, random, drawn); });
  std::map<Augmentation, int> counted = counts(all);
  expect_share(counted[kGaussianBlur], kDraws, 6.0 / 33);
  expect_share(counted[kColor], kDraws, 7.0 / 33);  // desaturated, and enhanced
  expect_share(counted[kRotate], kDraws, 3.0 / 33);
  EXPECT_EQ(counted.count(kTranslateX), 0u);
  for (const Augmentations& sample : all)
    if (sample[0].augmentation == kGaussianBlur) EXPECT_NEAR(sample[0].amount, 1.05, 1e-12);  // 0.1 + 1.9 * 5 / 10
}

TEST(TimmPolicy, OnlyRandAugmentTakesLargeNoiseAsUniform) {
  const auto below_half = [](const char* config) {
    const auto policy = TimmPolicy::parse(config);
    int count = 0, of = 0;
    for (const Augmentations& sample :
         draws([&](base::Random&random, Augmentations&drawn) { policy->draw(kImage, random, drawn); }))
      for (const DrawnAugmentation& drawn : sample)
        if (drawn.augmentation == kRotate && ++of > 0)
          count += std::abs(drawn.amount) > 0 && std::abs(drawn.amount) < 15;
    return static_cast<double>(count) / of;
  };
  EXPECT_NEAR(below_half("rand-m10-mstd101"), 0.5, 0.06);  // for levels from 0 to 10
  EXPECT_LT(below_half("v0-mstd101"), 0.05);               // nearly all are clamped to 0 or 10
}

TEST(TimmPolicy, WhatItDoesNotKnowItNames) {
  for (const char* config : {"", "rnad-m9", "rand-x3", "rand-m9-n1000", "rand-p1.5", "rand-t3b", "original-m9",
                             "rand-m9x", "3a-m5", "rand-n16-tweights", "rand-n15-t3aw"}) {
    const auto policy = TimmPolicy::parse(config);
    ASSERT_FALSE(policy) << config;
    EXPECT_EQ(policy.error().code, ErrorCode::kConfig);
    EXPECT_NE(policy.error().what.find("'" + std::string(config) + "'"), std::string::npos) << policy.error().what;
  }
  EXPECT_TRUE(TimmPolicy::parse("rand"));
  EXPECT_TRUE(TimmPolicy::parse("rand-inc"));  // timm skips a section without a number
}

}  // namespace
}  // namespace feedline::transform
