// SPDX-License-Identifier: Apache-2.0

// Compares pixels with checksums computed by Pillow 13 (pillow_golden.py), on every kernel variant.

#include <gtest/gtest.h>

#include "transform/border.h"
#include "transform/kernels/colour.h"
#include "transform/kernels/test_images.h"
#include "transform/test_resize.h"

namespace feedline::transform {
namespace {

struct ResizeCase {
  int width, height, channels;
  std::uint32_t seed;
  int out_width, out_height;
  Interpolation interpolation;
  std::uint64_t checksum;
};
struct JitterCase {
  int channels, which;
  double factor;
  std::uint64_t checksum;
};
struct PadCase {
  int width, height, channels;
  Padding padding;
  PaddingMode mode;
  std::uint64_t checksum;
};

#include "transform/kernels/variants.h"
#include "transform/pillow_golden.inc"

class PillowGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PillowGolden, Resize) {
  const ForcedVariant forced(GetParam());
  for (const ResizeCase& c : kResizeCases) {
    const TestImage image = test_image(c.width, c.height, c.channels, c.seed);
    const TestImage out = resized(image, {c.out_height, c.out_width}, c.interpolation);
    EXPECT_EQ(checksum(out.pixels), c.checksum)
        << c.width << " x " << c.height << " x " << c.channels << " to " << c.out_width << " x " << c.out_height
        << " by " << static_cast<int>(c.interpolation);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, PillowGolden, ::testing::ValuesIn(simd_variants()),
                         [](const auto& variant) { return variant.param; });

TEST(PillowGoldenColour, Jitter) {
  for (const JitterCase& c : kJitterCases) {
    memory::PixelBuffer image = buffer_of(test_image(61, 47, c.channels, 8));
    JitterDrawing drawing;
    std::optional<double>* factors[] = {&drawing.brightness, &drawing.contrast, &drawing.saturation, &drawing.hue};
    *factors[c.which] = c.factor;
    ASSERT_TRUE(jitter(image, drawing));
    EXPECT_EQ(checksum(packed(image.view()).pixels), c.checksum)
        << "adjustment " << c.which << " by " << c.factor << " of " << c.channels << " channels";
  }
}

TEST(PillowGoldenColour, Grayscale) {
  memory::PixelBuffer grey;
  const TestImage image = test_image(61, 47, 3, 8);
  ASSERT_TRUE(grayscale(image.view(), 1, grey));
  EXPECT_EQ(checksum(packed(grey.view()).pixels), kGreyOfRgb);
  memory::PixelBuffer three;
  ASSERT_TRUE(grayscale(image.view(), 3, three));
  for (int y = 0; y < 47; ++y)
    for (int i = 0; i < 61 * 3; ++i) ASSERT_EQ(three.row(y)[i], grey.row(y)[i / 3]);
}

TEST(PillowGoldenBorder, Pad) {
  for (const PadCase& c : kPadCases) {
    const TestImage image = test_image(c.width, c.height, c.channels, 20);
    const Size whole = padded({c.height, c.width}, c.padding);
    const PadStep step{c.padding, c.mode, {200, 7, 90}, {0, 0, whole.width, whole.height}};
    std::vector<int> map;
    memory::PixelBuffer out;
    ASSERT_TRUE(pad(image.view(), step, map, out));
    EXPECT_EQ(checksum(packed(out.view()).pixels), c.checksum)
        << c.width << " x " << c.height << " x " << c.channels << " mode " << static_cast<int>(c.mode);
  }
}

}  // namespace
}  // namespace feedline::transform
