// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts rows of stored samples to RGB or greyscale (L) with Pillow's integer formulas. Rows need no alignment. The
// source and the destination must not overlap.

#include <cstdint>

namespace feedline::decode {

// Computes Pillow's L24: the ITU-R 601 weights in 16-bit fixed point, with rounding.
inline std::uint8_t luma(int red, int green, int blue) {
  return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

void rgb_to_l(const std::uint8_t* rgb, int pixels, std::uint8_t* l);
// Converts four samples as stored in an Adobe CMYK JPEG (or a YCCK JPEG after libjpeg's conversion): 255 means no ink.
void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, int pixels, std::uint8_t* rgb);
void inverted_cmyk_to_l(const std::uint8_t* cmyk, int pixels, std::uint8_t* l);

}  // namespace feedline::decode
