// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts rows of stored samples to RGB or greyscale (L) with Pillow's integer formulas. Rows need no alignment;
// source and destination must not overlap.

#include <cstdint>

namespace feedline::decode {

// Pillow's L24: 16-bit fixed-point weights of ITU-R 601, rounded.
inline std::uint8_t luma(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

void rgb_to_l(const std::uint8_t* rgb, int pixels, std::uint8_t* l);
// Four samples as stored in an Adobe CMYK (or, after libjpeg's conversion, YCCK) JPEG: 255 means no ink.
void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, int pixels, std::uint8_t* rgb);
void inverted_cmyk_to_l(const std::uint8_t* cmyk, int pixels, std::uint8_t* l);

}  // namespace feedline::decode
