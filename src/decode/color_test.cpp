// SPDX-License-Identifier: Apache-2.0
#include "decode/color.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

namespace feedline::decode {
namespace {

// The checksums were computed with Pillow 13.0: Image.convert("L") for RGB, Image.convert("RGB") for CMYK.
unsigned long checksum(const std::vector<std::uint8_t>& bytes) { return crc32_z(0, bytes.data(), bytes.size()); }

TEST(Color, LumaIsPillows) {
  std::vector<std::uint8_t> rgb;
  for (int r = 0; r < 256; r += 5)
    for (int g = 0; g < 256; g += 5)
      for (int b = 0; b < 256; b += 5)
        for (const int value : {r, g, b}) rgb.push_back(static_cast<std::uint8_t>(value));
  std::vector<std::uint8_t> l(rgb.size() / 3);
  rgb_to_l(rgb.data(), static_cast<int>(l.size()), l.data());
  EXPECT_EQ(checksum(l), 2005084553UL);
}

TEST(Color, CmykIsPillows) {
  std::vector<std::uint8_t> cmyk;
  for (int c = 0; c < 256; c += 10)
    for (int m = 0; m < 256; m += 10)
      for (int y = 0; y < 256; y += 10)
        for (int k = 0; k < 256; k += 10)
          for (const int value : {c, m, y, k}) cmyk.push_back(static_cast<std::uint8_t>(value));
  const int pixels = static_cast<int>(cmyk.size() / 4);
  std::vector<std::uint8_t> rgb(cmyk.size() / 4 * 3), l(cmyk.size() / 4), luma_of_rgb(l.size());
  inverted_cmyk_to_rgb(cmyk.data(), pixels, rgb.data());
  EXPECT_EQ(checksum(rgb), 1037768813UL);
  inverted_cmyk_to_l(cmyk.data(), pixels, l.data());
  rgb_to_l(rgb.data(), pixels, luma_of_rgb.data());
  EXPECT_EQ(l, luma_of_rgb);
}

}  // namespace
}  // namespace feedline::decode
