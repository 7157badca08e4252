// SPDX-License-Identifier: Apache-2.0
#include "transform/warp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "transform/chain.h"
#include "transform/kernels/test_images.h"

namespace feedline::transform {
namespace {

TEST(Warp, KeepsTheSizeUnlessARotationExpands) {
  const Size image{30, 50};
  const auto after = [&](const auto& parameters) { return size_after({parameters, {}, {}}, image); };
  EXPECT_EQ(after(AffineWarp{.angle = 40}).width, 50);
  EXPECT_EQ(after(RotationWarp{40, false, {}}).height, 30);
  EXPECT_EQ(after(RotationWarp{90, true, {}}).height, 50);
  EXPECT_GT(after(RotationWarp{40, true, {}}).width, 50);
  EXPECT_EQ(after(ElasticWarp{}).width, 50);
}

TEST(Warp, CornersMoveInwardsByWholePixels) {
  for (std::uint64_t sample = 0; sample < 200; ++sample) {
    base::Random random({1, 2, sample}, 0);
    const PerspectiveWarp drawn = draw_perspective(0.6, {31, 50}, random);
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = std::abs(drawn.end[i][0] - drawn.start[i][0]), y = std::abs(drawn.end[i][1] - drawn.start[i][1]);
      EXPECT_TRUE(x <= 15 && y <= 9 && x == std::floor(x) && y == std::floor(y));
      EXPECT_TRUE(drawn.end[i][0] >= 0 && drawn.end[i][0] <= 49 && drawn.end[i][1] >= 0 && drawn.end[i][1] <= 30);
    }
  }
}

// Compares the result with the definition, which weights every noise value with a two-dimensional window.
TEST(Warp, ADisplacementIsBlurredNoise) {
  const Size size{7, 9};
  const ElasticWarp bare{{2, 3}, {0, 0}, {5, 6, 7}, 8}, blurred{{2, 3}, {0.7, 1.1}, {5, 6, 7}, 8};
  ElasticScratch scratch;
  const auto noise = elastic_displacement(bare, size, scratch);
  const std::vector<float> in(noise.begin(), noise.end());
  const auto out = elastic_displacement(blurred, size, scratch);
  const auto reflected = [](int i, int side) {
    while (i < 0 || i >= side) i = i < 0 ? -i : 2 * (side - 1) - i;
    return i;
  };
  for (int direction = 0; direction < 2; ++direction) {
    const int radius = static_cast<int>(8 * (direction == 0 ? 0.7 : 1.1) + 1) / 2;
    for (int y = 0; y < size.height; ++y)
      for (int x = 0; x < size.width; ++x) {
        double sum = 0, weights = 0;
        for (int dy = -radius; dy <= radius; ++dy)
          for (int dx = -radius; dx <= radius; ++dx) {
            const double weight = std::exp(-(dx * dx / 0.49 + dy * dy / 1.21) / 2);
            sum +=
                weight * in[static_cast<std::size_t>(direction * 63 + reflected(y + dy, 7) * 9 + reflected(x + dx, 9))];
            weights += weight;
          }
        EXPECT_NEAR(out[static_cast<std::size_t>(direction * 63 + y * 9 + x)], sum / weights, 1e-6);
      }
  }
}

TEST(Warp, ADisplacementIsWithinAlphaAndFollowsFromItsKey) {
  ElasticScratch scratch, another;
  const ElasticWarp elastic{{40, 10}, {0, 0}, {1, 2, 3}, 4};
  const auto first = elastic_displacement(elastic, {20, 30}, scratch);
  const std::vector<float> copy(first.begin(), first.end());
  float most_x = 0, most_y = 0;
  for (std::size_t i = 0; i < 600; ++i) {
    most_x = std::max(most_x, std::abs(copy[i]));
    most_y = std::max(most_y, std::abs(copy[600 + i]));
  }
  EXPECT_NEAR(most_x, 40.0 / 30, 0.02);
  EXPECT_NEAR(most_y, 10.0 / 20, 0.01);
  const auto again = elastic_displacement(elastic, {20, 30}, another);
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), again.begin(), again.end()));
  const auto other = elastic_displacement({{40, 10}, {0, 0}, {1, 2, 4}, 4}, {20, 30}, another);
  EXPECT_FALSE(std::equal(copy.begin(), copy.end(), other.begin(), other.end()));
}

}  // namespace
}  // namespace feedline::transform
