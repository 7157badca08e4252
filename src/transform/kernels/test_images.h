// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and variants for the tests of this folder.

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "memory/pixels.h"
#include "transform/kernels/variants.h"

namespace feedline::transform {

// A vector that ends at its last pixel, so that sanitizers detect reads beyond it.
struct TestImage {
  int width = 0, height = 0, channels = 0;
  std::vector<std::uint8_t> pixels;

  memory::PixelView view() const {
    return {pixels.data(), width, height, channels, static_cast<std::size_t>(width * channels)};
  }
  friend bool operator==(const TestImage&, const TestImage&) = default;
};

// Generates pixels as pillow_golden.py does: the high bytes of a linear congruential generator, or only 0 and 255 if
// seed is odd.
inline TestImage test_image(int width, int height, int channels, std::uint32_t seed) {
  TestImage image{width, height, channels, {}};
  image.pixels.resize(static_cast<std::size_t>(width * height * channels));
  std::uint32_t state = seed;
  for (std::uint8_t& pixel : image.pixels) {
    state = state * 1664525u + 1013904223u;
    const auto value = static_cast<std::uint8_t>(state >> 24);
    pixel = seed % 2 == 0 ? value : value > 127 ? 255 : 0;
  }
  return image;
}

inline TestImage packed(memory::PixelView view) {
  TestImage image{view.width, view.height, view.channels, {}};
  for (int y = 0; y < view.height; ++y)
    image.pixels.insert(image.pixels.end(), view.row(y), view.row(y) + view.width * view.channels);
  return image;
}

inline memory::PixelBuffer buffer_of(const TestImage& image) {
  memory::PixelBuffer buffer;
  EXPECT_TRUE(buffer.resize(image.width, image.height, image.channels));
  const auto row_bytes = static_cast<std::ptrdiff_t>(image.width * image.channels);
  for (int y = 0; y < image.height; ++y) std::copy_n(image.pixels.begin() + y * row_bytes, row_bytes, buffer.row(y));
  return buffer;
}

// FNV-1a, 64 bits.
inline std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0xCBF29CE484222325u;
  for (const std::uint8_t byte : bytes) value = (value ^ byte) * 0x100000001B3u;
  return value;
}

// Runs a function with one variant, and then restores the best one.
class ForcedVariant {
 public:
  explicit ForcedVariant(const std::string& name) { EXPECT_TRUE(force_simd_variant(name)); }
  ~ForcedVariant() { EXPECT_TRUE(force_simd_variant("")); }
  ForcedVariant(const ForcedVariant&) = delete;
  ForcedVariant& operator=(const ForcedVariant&) = delete;
};

constexpr Interpolation kInterpolations[] = {Interpolation::kNearest, Interpolation::kBox, Interpolation::kBilinear,
                                             Interpolation::kBicubic};

}  // namespace feedline::transform
