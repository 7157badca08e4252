// SPDX-License-Identifier: Apache-2.0
#include "decode/color.h"

#include <algorithm>

namespace feedline::decode {
namespace {

// a * b / 255, rounded like Pillow
int multiply_255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

std::uint8_t without_ink(int ink, int paper) {
  return static_cast<std::uint8_t>(std::clamp(paper - multiply_255(ink, paper), 0, 255));
}

}  // namespace

void rgb_to_l(const std::uint8_t* rgb, int pixels, std::uint8_t* l) {
  for (int i = 0; i < pixels; ++i) l[i] = luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, int pixels, std::uint8_t* rgb) {
  for (int i = 0; i < pixels; ++i, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c)
      rgb[c] = without_ink(255 - cmyk[c], cmyk[3]);  // cmyk[3]: the light that black ink leaves
}

void inverted_cmyk_to_l(const std::uint8_t* cmyk, int pixels, std::uint8_t* l) {
  for (int i = 0; i < pixels; ++i, cmyk += 4) {
    std::uint8_t rgb[3];
    inverted_cmyk_to_rgb(cmyk, 1, rgb);
    l[i] = luma(rgb[0], rgb[1], rgb[2]);
  }
}

}  // namespace feedline::decode
