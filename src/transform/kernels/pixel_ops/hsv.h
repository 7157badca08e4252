// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pillow's conversion between RGB and HSV bytes, bit for bit, with the types and the order of operations in Pillow's
// Convert.c.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace feedline::transform {

struct Hsv {
  std::uint8_t hue, saturation, value;
};

inline Hsv to_hsv(const std::uint8_t* rgb) {
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
  // equals fmod(x, 1) for x in (0, 2), because subtracting 1 is exact
  const double turns = hue / 6.0 + 1.0;
  hue = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  const auto byte = [](float share) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(share * 255.0), 0, 255));
  };
  return {byte(hue), byte(saturation), most};
}

// For each hue, the sixth of the colour circle and the position within it.
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

inline void to_rgb(const Hsv& hsv, const HueTable& hues, std::uint8_t* rgb) {
  const std::uint8_t v = hsv.value;
  if (hsv.saturation == 0) {
    rgb[0] = rgb[1] = rgb[2] = v;
    return;
  }
  const auto rounded = [](double value) {
    return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::round(value)), 0, 255));
  };
  const float f = hues.rest[hsv.hue];
  const float s = static_cast<float>(static_cast<float>(hsv.saturation) / 255.0);
  const float value = static_cast<float>(v);
  const std::uint8_t p = rounded(value * (1.0 - s));
  const std::uint8_t q = rounded(value * (1.0 - s * f));
  const std::uint8_t t = rounded(value * (1.0 - s * (1.0 - f)));
  const std::uint8_t sectors[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  std::copy_n(sectors[hues.sector[hsv.hue]], 3, rgb);
}

}  // namespace feedline::transform
