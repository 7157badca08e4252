// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_filters.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

namespace feedline::decode {
namespace {

// Implements the specification's algorithm, byte by byte.
int predicted(int filter, int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int to_left = std::abs(estimate - left), to_above = std::abs(estimate - above);
  const int to_corner = std::abs(estimate - corner);
  switch (filter) {
    case 1:
      return left;
    case 2:
      return above;
    case 3:
      return (left + above) / 2;
    case 4:
      return to_left <= to_above && to_left <= to_corner ? left : to_above <= to_corner ? above : corner;
    default:
      return 0;
  }
}

TEST(PngFilters, AreTheSpecifications) {
  std::mt19937 random(1);
  for (const int pixel : {1, 2, 3, 4, 6, 8})
    for (int filter = 0; filter < 5; ++filter)
      for (const int pixels : {1, 2, 3, 4, 5, 17, 1000})
        for (const int steps : {1, 40, 256}) {  // few distinct bytes, so that many distances are equal
          const int bytes = pixel * pixels;
          std::vector<std::uint8_t> above, stored, expected;
          for (int i = 0; i < bytes; ++i) {
            above.push_back(static_cast<std::uint8_t>(random() % 256 / steps * steps));
            stored.push_back(static_cast<std::uint8_t>(random() % 256 / steps * steps));
          }
          for (int i = 0; i < bytes; ++i) {
            const auto at = static_cast<std::size_t>(i), before = static_cast<std::size_t>(i - pixel);
            const int left = i < pixel ? 0 : expected[before], corner = i < pixel ? 0 : above[before];
            expected.push_back(static_cast<std::uint8_t>(stored[at] + predicted(filter, left, above[at], corner)));
          }
          stored.push_back(77);  // the next row's
          ASSERT_TRUE(unfilter(static_cast<std::uint8_t>(filter), pixel, stored.data(), above.data(),
                               static_cast<std::size_t>(bytes)));
          ASSERT_EQ(stored.back(), 77) << "written past the row";
          stored.pop_back();
          ASSERT_EQ(stored, expected) << "filter " << filter << ", " << pixel << " bytes a pixel, " << pixels;
        }
}

TEST(PngFilters, OtherNumbersAreRefused) {
  std::uint8_t row[8] = {}, above[8] = {};
  for (const int filter : {5, 6, 127, 128, 255})
    EXPECT_FALSE(unfilter(static_cast<std::uint8_t>(filter), 4, row, above, sizeof row));
}

}  // namespace
}  // namespace feedline::decode
