// SPDX-License-Identifier: Apache-2.0
#include "transform/kernels/axis_table.h"

#include <gtest/gtest.h>

#include <random>

#include "transform/kernels/test_images.h"

namespace feedline::transform {
namespace {

std::vector<std::int32_t> weights(const AxisTable& table, int i) {
  return {table.weights(i), table.weights(i) + table.used(i)};
}

TEST(AxisTable, HalvingWeighsFourPixels) {
  AxisTable table;
  table.compute({.in = 8, .out = 4, .begin = 0, .count = 4}, 0);
  EXPECT_EQ(table.taps(), 4);
  // inside: triangle of 1/8, 3/8, 3/8, 1/8; at the border the other taps share the missing weight
  EXPECT_EQ(table.first(1), 1);
  EXPECT_EQ(weights(table, 1), (std::vector<std::int32_t>{1 << 19, 3 << 19, 3 << 19, 1 << 19}));
  EXPECT_EQ(table.first(0), 0);
  EXPECT_EQ(weights(table, 0), (std::vector<std::int32_t>{1797559, 1797559, 599186}));  // 3/7, 3/7, 1/7
}

TEST(AxisTable, SpanIsWhatTheTableReads) {
  std::mt19937 random(3);
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 4000; ++round) {
    AxisRequest request{number(1, 300), number(1, 300), 0, 1, kInterpolations[round % 4], round % 8 > 3};
    request.begin = number(0, request.out - 1);
    request.count = number(1, request.out - request.begin);
    AxisTable table;
    table.compute(request, 0);
    int begin = request.in, end = 0;
    for (int i = 0; i < table.count(); ++i) {
      begin = std::min(begin, table.first(i));
      end = std::max(end, table.first(i) + table.used(i));
      ASSERT_LE(table.used(i), table.taps());
    }
    const AxisSpan span = source_span(request);
    ASSERT_EQ(span.begin, begin);
    ASSERT_EQ(span.end, end);
  }
}

TEST(AxisTable, AWindowIsAPartOfTheWhole) {
  for (const Interpolation interpolation : kInterpolations) {
    AxisTable whole, part, mirrored;
    whole.compute({375, 224, 0, 224, interpolation, false}, 0);
    part.compute({375, 224, 50, 100, interpolation, false}, 7);
    mirrored.compute({375, 224, 50, 100, interpolation, true}, 7);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(part.first(i) + 7, whole.first(50 + i));
      ASSERT_EQ(weights(part, i), weights(whole, 50 + i));
      ASSERT_EQ(mirrored.first(99 - i), part.first(i));
      ASSERT_EQ(weights(mirrored, 99 - i), weights(part, i));
    }
  }
}

// A thread reuses its table, which must not contain data of an earlier request.
TEST(AxisTable, ForgetsEarlierRequests) {
  AxisTable used;
  used.compute({500, 30, 0, 30, Interpolation::kBicubic, false}, 0);
  used.compute({60, 30, 0, 30, Interpolation::kBilinear, false}, 0);
  AxisTable fresh;
  fresh.compute({60, 30, 0, 30, Interpolation::kBilinear, false}, 0);
  ASSERT_EQ(used.taps(), fresh.taps());
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(used.first(i), fresh.first(i));
    EXPECT_EQ(weights(used, i), weights(fresh, i));
  }
}

TEST(AxisTable, EqualSizesCopy) {
  AxisTable table;
  table.compute({9, 9, 2, 5, Interpolation::kBicubic, false}, 2);
  EXPECT_TRUE(table.identity());
  EXPECT_EQ(table.first(0), 0);
  EXPECT_EQ(weights(table, 4), std::vector<std::int32_t>{1 << kWeightBits});
}

// Folded weights, applied to samples, must produce the same result as exact weights, applied to the pixels that the
// samples represent.
TEST(AxisTable, FoldedWeighsSamplesAsThePixelsMadeOfThem) {
  std::mt19937 random(20261121);
  const auto number = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 3000; ++round) {
    const AxisRequest whole{number(1, 300), number(1, 200), 0, 1, kInterpolations[1 + round % 3], round % 2 == 0};
    AxisRequest request = whole;
    request.begin = number(0, request.out - 1);
    request.count = number(1, request.out - request.begin);
    const int pixel = number(0, 40), image = pixel + request.in + number(0, 40);
    memory::PlaneAxis axis{.first = 0, .size = image, .halved = number(0, 1) == 1, .shift = number(0, 3)};
    if (axis.halved) axis.size = (image + 1) / 2;
    const AxisSpan span = source_span(request);
    axis.first = std::max(0, ((pixel + span.begin) / (axis.halved ? 2 : 1) - 1) >> axis.shift);
    std::vector<double> samples(static_cast<std::size_t>(image));
    for (double& sample : samples) sample = number(0, 255);
    const auto sample_at = [&](int i) { return samples[static_cast<std::size_t>((i >> axis.shift) - axis.first)]; };
    const auto value_of = [&](int x) {
      if (!axis.halved) return sample_at(x);
      return 0.75 * sample_at(x / 2) +
             0.25 * sample_at(std::clamp(x % 2 == 0 ? x / 2 - 1 : x / 2 + 1, 0, axis.size - 1));
    };
    AxisTable exact, folded;
    exact.compute(request, 0);
    folded.fold(exact, axis, pixel);
    ASSERT_EQ(folded.count(), exact.count());
    for (int i = 0; i < exact.count(); ++i) {
      double expected = 0, got = 0;
      for (int t = 0; t < exact.used(i); ++t) expected += exact.weights(i)[t] * value_of(pixel + exact.first(i) + t);
      for (int t = 0; t < folded.used(i); ++t)
        got += folded.weights(i)[t] * samples[static_cast<std::size_t>(folded.first(i) + t)];
      ASSERT_LE(folded.used(i), folded.taps());
      ASSERT_NEAR(got / (1 << kWeightBits), expected / (1 << kWeightBits), 0.01) << request.in << " to " << request.out;
    }
  }
}

}  // namespace
}  // namespace feedline::transform
