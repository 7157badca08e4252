// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/argument_checks.h"

#include <charconv>
#include <cmath>

#include "memory/pixels.h"

namespace feedline::transform {

std::string shown(double value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string shown(const Range& range) { return "(" + shown(range.low) + ", " + shown(range.high) + ")"; }
std::string shown(Size size) { return std::to_string(size.height) + " x " + std::to_string(size.width); }

Result<void> check_size(Size size) {
  const auto sound = [](int side) { return side >= 1 && side <= kMostPixelsPerSide; };
  if (sound(size.height) && sound(size.width) &&
      std::int64_t{size.height} * size.width <= memory::PixelBuffer::kMaxPixels)
    return {};
  return config_error("size (height, width) must be from 1 pixel to " + std::to_string(kMostPixelsPerSide) +
                      " each and at most " + std::to_string(memory::PixelBuffer::kMaxPixels) + " together, got (" +
                      std::to_string(size.height) + ", " + std::to_string(size.width) + ")");
}

Result<void> check_positive(std::string_view name, const Range& range) {
  if (range.low > 0 && range.low <= range.high && std::isfinite(range.high)) return {};
  return config_error(std::string(name) + " must be two numbers 0 < low <= high, got " + shown(range));
}

Result<void> check_between(std::string_view name, const Range& range, double low, double high) {
  if (range.low >= low && range.low <= range.high && range.high <= high && std::isfinite(range.high)) return {};
  const std::string limit = std::isfinite(high) ? " <= " + shown(high) : "";
  return config_error(std::string(name) + " must be two numbers " + shown(low) + " <= low <= high" + limit + ", got " +
                      shown(range));
}

Result<void> check_padding(const Padding& padding) {
  for (const int side : {padding.left, padding.top, padding.right, padding.bottom})
    if (side < 0 || side > kMostPixelsPerSide)
      return config_error("padding must be from 0 to " + std::to_string(kMostPixelsPerSide) + ", got " +
                          std::to_string(side));
  return {};
}

Result<void> check_probability(std::string_view name, double p) {
  if (p >= 0 && p <= 1) return {};
  return config_error(std::string(name) + " must be between 0 and 1, got " + shown(p));
}
Result<void> check_probability(double p) { return check_probability("p", p); }

Result<void> check_side(std::string_view name, int side) {
  if (side >= 1 && side <= kMostPixelsPerSide) return {};
  return config_error(std::string(name) + " must be from 1 to " + std::to_string(kMostPixelsPerSide) + ", got " +
                      std::to_string(side));
}

Result<void> check_jitter(const Range& brightness, const Range& contrast, const Range& saturation, const Range& hue) {
  FEEDLINE_CHECK_OK(check_between("brightness", brightness, 0, INFINITY));
  FEEDLINE_CHECK_OK(check_between("contrast", contrast, 0, INFINITY));
  FEEDLINE_CHECK_OK(check_between("saturation", saturation, 0, INFINITY));
  return check_between("hue", hue, -0.5, 0.5);
}

Result<void> check_degrees(std::string_view name, const Range& range) {
  if (range.low <= range.high && std::isfinite(range.low) && std::isfinite(range.high)) return {};
  return config_error(std::string(name) + " must be two finite numbers, the lower first, got " + shown(range));
}

Result<void> check_at_least_one(std::string_view name, double value) {
  if (value >= 1 && std::isfinite(value)) return {};
  return config_error(std::string(name) + " must be at least 1, got " + shown(value));
}

Result<void> check_bins(int bins) {
  constexpr int kMostBins = 1 << 20;
  if (bins >= 2 && bins <= kMostBins) return {};
  return config_error("num_magnitude_bins must be from 2 to " + std::to_string(kMostBins) + ", got " +
                      std::to_string(bins));
}

}  // namespace feedline::transform
