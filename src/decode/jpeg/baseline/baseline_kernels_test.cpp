// SPDX-License-Identifier: Apache-2.0

// The kernels of every instruction set must match the scalar kernels, and these must match libjpeg's formulas.

#include "decode/jpeg/baseline/baseline_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "decode/jpeg/baseline/baseline_idct.h"

namespace feedline::decode::baseline {
namespace {

class BaselineKernels : public testing::TestWithParam<const Kernels*> {
 protected:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  std::vector<std::uint8_t> row(std::size_t count) {
    std::vector<std::uint8_t> samples(kRowSlack + count + kRowSlack);
    const bool extreme = number(0, 1) == 1;
    for (std::uint8_t& sample : samples)
      sample = static_cast<std::uint8_t>(extreme ? number(0, 1) * 255 : number(0, 255));
    return samples;
  }
  std::mt19937 random_{20261121};
};

// Coefficients range from those found in photos to values that exceed 16 bits after multiplication.
TEST_P(BaselineKernels, InverseDct) {
  const Kernels& kernels = *GetParam();
  constexpr int kGroups = 3;
  const auto blocks = static_cast<std::size_t>(kernels.group) * kGroups;
  for (int round = 0; round < 3000; ++round) {
    const int largest = 1 << number(0, 15), density = number(1, 64), steps = 1 << number(0, 16);
    std::array<std::uint16_t, kBlockSize> quantisation;
    for (std::uint16_t& step : quantisation) step = static_cast<std::uint16_t>(number(1, steps));
    alignas(64) std::array<std::int16_t, kChunkMcus * kGroups * kBlockSize> coefficients{};
    std::vector<std::uint8_t> expected(blocks * kBlockSize), got(blocks * kBlockSize + kRowSlack, 0x5A);
    const std::size_t stride = blocks * kBlockSide;
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t group = static_cast<std::size_t>(kernels.group);
      std::int16_t* const first = coefficients.data() + b / group * group * kBlockSize + b % group * kBlockSide;
      const std::size_t row_stride = kBlockSide * group;
      const bool first_row_only = number(0, 3) == 0;
      for (std::size_t k = 0; k < kBlockSize; ++k)
        if (number(1, 64) <= density && (k < kBlockSide || !first_row_only))
          first[k / kBlockSide * row_stride + k % kBlockSide] =
              static_cast<std::int16_t>(number(-largest, largest - 1));
      inverse_dct_of_block(first, row_stride, quantisation.data(), expected.data() + b * kBlockSide, stride);
    }
    kernels.inverse_dct[0](coefficients.data(), quantisation.data(), kGroups, got.data(), stride);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << "round " << round;
    ASSERT_EQ(got[blocks * kBlockSize], 0x5A);
    ASSERT_EQ(coefficients, decltype(coefficients){});
  }
}

TEST_P(BaselineKernels, ReducedDct) {
  const Kernels& kernels = *GetParam();
  constexpr int kGroups = 3;
  const auto group = static_cast<std::size_t>(kernels.group), blocks = group * kGroups;
  for (int round = 0; round < 3000; ++round) {
    const int reduction = number(1, kMaxReduction), largest = 1 << number(0, 15), steps = 1 << number(0, 16);
    const auto side = static_cast<std::size_t>(kBlockSide >> reduction), stride = blocks * side;
    std::array<std::uint16_t, kBlockSize> quantisation;
    for (std::uint16_t& step : quantisation) step = static_cast<std::uint16_t>(number(1, steps));
    alignas(64) std::array<std::int16_t, kChunkMcus * kGroups * kBlockSize> coefficients{};
    for (std::size_t i = 0; i < blocks * kBlockSize; ++i)
      coefficients[i] = static_cast<std::int16_t>(number(-largest, largest - 1));
    std::vector<std::uint8_t> expected(side * stride), got(side * stride + kRowSlack, 0x5A);
    for (std::size_t b = 0; b < blocks; ++b)
      reduced_dct_of_block(coefficients.data() + b / group * group * kBlockSize + b % group * kBlockSide,
                           kBlockSide * group, quantisation.data(), reduction, expected.data() + b * side, stride);
    kernels.inverse_dct[static_cast<std::size_t>(reduction)](coefficients.data(), quantisation.data(), kGroups,
                                                             got.data(), stride);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), got.begin())) << "round " << round;
    ASSERT_EQ(got[side * stride], 0x5A);
    ASSERT_EQ(coefficients, decltype(coefficients){});
  }
}

TEST_P(BaselineKernels, Upsampling) {
  for (const int count : {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100})
    for (int round = 0; round < 20; ++round) {
      const auto near = row(static_cast<std::size_t>(count)), far = row(static_cast<std::size_t>(count));
      std::vector<std::uint8_t> expected(2 * static_cast<std::size_t>(count) + 2 * kRowSlack), got = expected;
      const auto same = [&] { return std::equal(expected.begin(), expected.begin() + 2 * count, got.begin()); };
      scalar_kernels().upsample_across(near.data() + kRowSlack, count, expected.data());
      GetParam()->upsample_across(near.data() + kRowSlack, count, got.data());
      ASSERT_TRUE(same()) << count;
      scalar_kernels().upsample_both(near.data() + kRowSlack, far.data() + kRowSlack, count, expected.data());
      GetParam()->upsample_both(near.data() + kRowSlack, far.data() + kRowSlack, count, got.data());
      ASSERT_TRUE(same()) << count;
    }
}

TEST_P(BaselineKernels, EveryColour) {
  std::vector<std::uint8_t> y(256 + kRowSlack), cb = y, cr = y;
  for (std::size_t i = 0; i < 256; ++i) cr[i] = static_cast<std::uint8_t>(i);
  std::vector<std::uint8_t> expected(256 * 3), got = expected;
  for (const int luma : {0, 1, 64, 127, 128, 200, 254, 255})
    for (int blue = 0; blue < 256; ++blue) {
      std::ranges::fill(y, static_cast<std::uint8_t>(luma));
      std::ranges::fill(cb, static_cast<std::uint8_t>(blue));
      scalar_kernels().ycc_to_rgb(y.data(), cb.data(), cr.data(), 256, expected.data());
      GetParam()->ycc_to_rgb(y.data(), cb.data(), cr.data(), 256, got.data());
      ASSERT_EQ(got, expected) << luma << " " << blue;
    }
}

TEST_P(BaselineKernels, ColourWritesNothingPastTheLastPixel) {
  for (int width = 1; width < 150; ++width) {
    const auto samples = row(static_cast<std::size_t>(width));
    std::vector<std::uint8_t> got(3 * static_cast<std::size_t>(width) + 256, 0x5A);
    const std::uint8_t* const from = samples.data() + kRowSlack;
    GetParam()->ycc_to_rgb(from, from, from, width, got.data());
    ASSERT_TRUE(std::all_of(got.begin() + 3 * width, got.end(), [](int value) { return value == 0x5A; })) << width;
  }
}

// Compares with the definition: the inverse DCT of the lowest coefficients, with the same number of samples.
TEST(ReducedDct, IsTheInverseTransformOfFewerSamples) {
  std::mt19937 random(20261121);
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 500; ++round) {
    const int reduction = number(1, kMaxReduction), side = kBlockSide >> reduction;
    std::array<std::int16_t, kBlockSize> coefficients{};
    std::array<std::uint16_t, kBlockSize> quantisation;
    for (std::size_t k = 0; k < kBlockSize; ++k) {
      quantisation[k] = static_cast<std::uint16_t>(number(1, 20));
      const int largest = 400 / static_cast<int>(1 + k % kBlockSide + k / kBlockSide) / quantisation[k];
      coefficients[k] = static_cast<std::int16_t>(number(-largest, largest));
    }
    std::array<std::uint8_t, kBlockSize> got{};
    reduced_dct_of_block(coefficients.data(), kBlockSide, quantisation.data(), reduction, got.data(), kBlockSide);
    const auto basis = [side](int k, int i) {
      return k == 0 ? 1.0 : std::sqrt(2.0) * std::cos(std::numbers::pi * (2 * i + 1) * k / (2 * side));
    };
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        double sum = 0;
        for (int v = 0; v < side; ++v)
          for (int u = 0; u < side; ++u)
            sum += coefficients[static_cast<std::size_t>(v * 8 + u)] *
                   quantisation[static_cast<std::size_t>(v * 8 + u)] * basis(v, y) * basis(u, x);
        ASSERT_NEAR(got[static_cast<std::size_t>(y * 8 + x)], std::clamp(sum / 8 + 128, 0.0, 255.0), 0.75)
            << side << " samples, at " << x << ", " << y;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BaselineKernels, testing::ValuesIn(all_kernels()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST(BaselineKernelsList, EndsWithTheScalarOnes) {
  EXPECT_EQ(all_kernels().back(), &scalar_kernels());
  EXPECT_EQ(&best_kernels(), all_kernels().front());
  for (const Kernels* kernels : all_kernels()) EXPECT_EQ(kChunkMcus % kernels->group, 0) << kernels->name;
}

}  // namespace
}  // namespace feedline::decode::baseline
