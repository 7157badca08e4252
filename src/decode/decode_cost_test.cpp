// SPDX-License-Identifier: Apache-2.0
#include "decode/decode_cost.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "decode/image_formats.h"

namespace feedline::decode {
namespace {

// The formats that the engine decodes, JPEG first.
std::vector<const ImageFormat*> native_formats() {
  std::vector<const ImageFormat*> formats;
  for (const ImageFormat& format : image_formats())
    if (format.codec != nullptr) formats.push_back(&format);
  return formats;
}
const std::vector<const ImageFormat*> kFormats = native_formats();

ImageHeader header_of(const ImageFormat* format, int width, int height) {
  return {.width = width, .height = height, .format = format};
}

constexpr std::size_t kBytes = 100'000;

TEST(DecodeCost, ABoxIsAroundAllRegions) {
  EXPECT_EQ(bounding_box(std::array{Box{3, 4, 5, 6}}), (Box{3, 4, 5, 6}));
  EXPECT_EQ(bounding_box(std::array{Box{3, 4, 5, 6}, Box{1, 9, 2, 20}, Box{4, 2, 30, 1}}), (Box{1, 2, 33, 27}));
}

TEST(DecodeCost, MoreOfAnImageCostsMore) {
  for (const ImageFormat* const format : kFormats) {
    const ImageHeader header = header_of(format, 500, 375);
    const double small = decode_cost(header, kBytes, {100, 100, 50, 50});
    EXPECT_GT(small, 0);
    EXPECT_GT(decode_cost(header, kBytes, {100, 100, 60, 50}), small);
    EXPECT_GT(decode_cost(header, kBytes, {100, 100, 50, 60}), small);
    EXPECT_GT(decode_cost(header, kBytes, {100, 200, 50, 50}), small) << "what is above is read";
    EXPECT_GT(decode_cost(header, 2 * kBytes, {100, 100, 50, 50}), small);
  }
}

TEST(DecodeCost, ViewsThatOverlapAreDecodedAtOnceAndSmallOnesFarApartByThemselves) {
  for (const ImageFormat* const format : kFormats) {
    const ImageHeader header = header_of(format, 2000, 1500);
    const std::array same{Box{100, 100, 1500, 1200}, Box{150, 80, 1500, 1200}};
    EXPECT_FALSE(is_cheaper_apart(header, kBytes, same));
    std::vector<Box> many(10, Box{10, 1400, 90, 90});  // each reads the whole file
    EXPECT_FALSE(is_cheaper_apart(header, kBytes, many));
  }
  // at the top, so that little is read; far apart, so that the box is wide
  const std::array apart{Box{0, 0, 40, 40}, Box{1960, 10, 40, 40}};
  EXPECT_TRUE(is_cheaper_apart(header_of(kFormats[0], 2000, 1500), kBytes, apart));
}

}  // namespace
}  // namespace feedline::decode
