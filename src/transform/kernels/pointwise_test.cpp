// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace feedline::transform {
namespace {

TEST(Half, ReadsBackEveryValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_half(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(to_half(value), bits) << value;
  }
}

TEST(Half, RoundsToNearestAndTiesToEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = from_half(bits), high = from_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact, because a float has at least one more bit
    const std::uint16_t even = bits % 2 == 0 ? bits : static_cast<std::uint16_t>(bits + 1);
    ASSERT_EQ(to_half(middle), even);
    ASSERT_EQ(to_half(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(to_half(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(to_half(-middle), even | 0x8000);
  }
  EXPECT_EQ(to_half(65519.996f), 0x7bff);
  EXPECT_EQ(to_half(65520.0f), 0x7c00);
  EXPECT_EQ(to_half(INFINITY), 0x7c00);
  EXPECT_TRUE(std::isnan(from_half(to_half(NAN))));
}

TEST(Pointwise, DividesThenNormalizesInFloat32) {
  Pointwise pointwise(3);
  const op::Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  pointwise.normalize(normalize);
  pointwise.finish();
  EXPECT_EQ(pointwise.dtype(), DType::kFloat32);
  EXPECT_NE(pointwise.proved(), nullptr);
  for (std::size_t c = 0; c < 3; ++c)
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(pointwise.float32_tables()[c][i],
                (static_cast<float>(i) / 255.0f - normalize.mean[c]) / normalize.std[c]);
}

TEST(Pointwise, ConvertsWithAndWithoutScaling) {
  Pointwise plain(1), scaled(1), half(1);
  plain.convert(DType::kFloat32, false);
  plain.finish();
  scaled.convert(DType::kFloat32, true);
  scaled.finish();
  half.convert(DType::kFloat16, true);
  half.finish();
  EXPECT_EQ(plain.proved(), nullptr);  // without a division
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(plain.float32_tables()[0][i], static_cast<float>(i));
    EXPECT_EQ(scaled.float32_tables()[0][i], static_cast<float>(i) / 255.0f);
    EXPECT_EQ(half.float16_tables()[0][i], to_half(static_cast<float>(i) / 255.0f));
  }
}

// Like torch with float16 tensors, each step rounds to half precision.
TEST(Pointwise, NormalizesHalvesInHalves) {
  Pointwise pointwise(1);
  pointwise.convert(DType::kFloat16, true);
  pointwise.normalize({{0.485f}, {0.229f}});
  pointwise.finish();
  const auto round = [](float value) { return from_half(to_half(value)); };
  for (int i = 0; i < 256; ++i) {
    const float centred = round(round(static_cast<float>(i) / 255.0f) - round(0.485f));
    ASSERT_EQ(pointwise.float16_tables()[0][i], to_half(centred / round(0.229f)));
  }
}

// The fast arithmetic reproduces the table's bits for nearly every mean and std; if one bit differs for any byte, the
// table is used.
TEST(Pointwise, ProvesNearlyAllConstants) {
  std::mt19937 random(1);
  int proved = 0;
  for (int i = 0; i < 500; ++i) {
    Pointwise pointwise(1);
    std::uniform_real_distribution<float> mean(0, 1), std(0.01f, 2);
    pointwise.normalize({{mean(random)}, {std(random)}});
    pointwise.finish();
    proved += pointwise.proved() != nullptr;
  }
  EXPECT_GT(proved, 450);
  Pointwise twice(1);
  twice.normalize({{0.5f}, {0.5f}});
  twice.normalize({{0.25f}, {3.0f}});
  twice.finish();
  EXPECT_EQ(twice.proved(), nullptr);
}

}  // namespace
}  // namespace feedline::transform
