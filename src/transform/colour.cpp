// SPDX-License-Identifier: Apache-2.0
#include "transform/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

// Bit-exactness: types and order of the arithmetic are those of Pillow's Blend.c and Convert.c.

namespace feedline::transform {
namespace {

// ITU-R 601-2 luma with 16 fractional bits.
std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

// Image.blend for one sample: `from` at factor 0, `to` at factor 1, truncated; clipped outside [0, 1].
std::uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  if (factor >= 0.0f && factor <= 1.0f) return static_cast<std::uint8_t>(value);
  return value <= 0.0f ? 0 : value >= 255.0f ? 255 : static_cast<std::uint8_t>(value);
}

int samples_per_row(const memory::PixelBuffer& image) { return image.width() * image.channels(); }

// Blends with one value everywhere: a table does it.
void blend_with(memory::PixelBuffer& image, int value, float factor) {
  std::array<std::uint8_t, 256> table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = blend(value, i, factor);
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    for (int i = 0; i < samples_per_row(image); ++i) row[i] = table[row[i]];
  }
}

void adjust_contrast(memory::PixelBuffer& image, float factor) {
  std::uint64_t sum = 0;
  for (int y = 0; y < image.height(); ++y) {
    const std::uint8_t* row = image.row(y);
    for (int x = 0; x < image.width(); ++x) sum += image.channels() == 3 ? luma(row + x * 3) : row[x];
  }
  const double pixels = static_cast<double>(image.width()) * image.height();
  blend_with(image, static_cast<int>(static_cast<double>(sum) / pixels + 0.5), factor);
}

void adjust_saturation(memory::PixelBuffer& image, float factor) {
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    for (int x = 0; x < image.width(); ++x, row += 3) {
      const int grey = luma(row);
      for (int c = 0; c < 3; ++c) row[c] = blend(grey, row[c], factor);
    }
  }
}

struct Hsv {
  std::uint8_t hue, saturation, value;
};

Hsv to_hsv(const std::uint8_t* rgb) {
  const std::uint8_t red = rgb[0], green = rgb[1], blue = rgb[2];
  const std::uint8_t most = std::max({red, green, blue});
  const std::uint8_t least = std::min({red, green, blue});
  if (most == least) return {0, 0, most};
  const float range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float from_red = static_cast<float>(most - red) / range;
  const float from_green = static_cast<float>(most - green) / range;
  const float from_blue = static_cast<float>(most - blue) / range;
  float hue;
  if (red == most) {
    hue = from_blue - from_green;
  } else if (green == most) {
    hue = static_cast<float>(2.0 + from_red - from_blue);
  } else {
    hue = static_cast<float>(4.0 + from_green - from_red);
  }
  // what fmod(x, 1) gives for the x in (0, 2) that come here: subtracting 1 is exact
  const double turns = hue / 6.0 + 1.0;
  hue = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  const auto byte = [](float share) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(share * 255.0), 0, 255));
  };
  return {byte(hue), byte(saturation), most};
}

std::uint8_t rounded(double value) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::round(value)), 0, 255));
}

// Sixth of the colour circle, and the way through it, of each hue.
struct HueTable {
  std::array<std::uint8_t, 256> sector;
  std::array<float, 256> rest;

  HueTable() {
    for (std::size_t hue = 0; hue < 256; ++hue) {
      const double sixths = static_cast<float>(hue) * 6.0 / 255.0;
      const int whole = static_cast<int>(std::floor(sixths));
      sector[hue] = static_cast<std::uint8_t>(whole % 6);
      rest[hue] = static_cast<float>(sixths - static_cast<float>(whole));
    }
  }
};

void to_rgb(const Hsv& hsv, const HueTable& hues, std::uint8_t* rgb) {
  const std::uint8_t v = hsv.value;
  if (hsv.saturation == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const float f = hues.rest[hsv.hue];
  const float s = static_cast<float>(static_cast<float>(hsv.saturation) / 255.0);
  const float value = static_cast<float>(v);
  const std::uint8_t p = rounded(value * (1.0 - s));
  const std::uint8_t q = rounded(value * (1.0 - s * f));
  const std::uint8_t t = rounded(value * (1.0 - s * (1.0 - f)));
  const std::uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sectors[hues.sector[hsv.hue]], 3, rgb);
}

void adjust_hue(memory::PixelBuffer& image, double factor) {
  static const HueTable hues;
  // numpy's int32 -> uint8 wraps, and so does adding bytes
  const auto shift = static_cast<std::uint8_t>(static_cast<std::int32_t>(factor * 255) & 0xff);
  for (int y = 0; y < image.height(); ++y) {
    std::uint8_t* row = image.row(y);
    for (int x = 0; x < image.width(); ++x, row += 3) {
      Hsv hsv = to_hsv(row);
      hsv.hue = static_cast<std::uint8_t>(hsv.hue + shift);
      to_rgb(hsv, hues, row);
    }
  }
}

}  // namespace

Result<void> grayscale(memory::PixelView in, int channels, memory::PixelBuffer& out) {
  FEEDLINE_CHECK_OK(out.resize(in.width, in.height, channels));
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* from = in.row(y);
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < in.width; ++x, from += in.channels) {
      const std::uint8_t grey = in.channels == 3 ? luma(from) : *from;
      for (int c = 0; c < channels; ++c) *to++ = grey;
    }
  }
  return {};
}

void jitter(memory::PixelBuffer& image, const JitterDrawing& drawing) {
  const bool colour = image.channels() == 3;
  for (const int which : drawing.order) {
    if (which == 0 && drawing.brightness) blend_with(image, 0, static_cast<float>(*drawing.brightness));
    if (which == 1 && drawing.contrast) adjust_contrast(image, static_cast<float>(*drawing.contrast));
    if (which == 2 && drawing.saturation && colour) adjust_saturation(image, static_cast<float>(*drawing.saturation));
    if (which == 3 && drawing.hue && colour) adjust_hue(image, *drawing.hue);
  }
}

}  // namespace feedline::transform
