// SPDX-License-Identifier: Apache-2.0
#pragma once

// Formats arguments for descriptions of operations. The keys of cached pixels contain these texts, so changing a text
// invalidates caches.

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/operation.h"
#include "transform/operation/argument_words.h"

namespace feedline::transform {

// Returns the shortest decimal number that is read back as the same number.
template <typename T>
std::string number(T value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

std::string in_brackets(double first, double second);
std::string in_brackets(const Range& range);
std::string in_brackets(const std::array<int, 2>& pair);
std::string in_brackets(const Padding& padding);
std::string listed(const std::vector<float>& values);
std::string listed(const std::vector<std::string>& words);
std::string listed(const std::vector<Operation>& operations);
std::string sides(Size size);  // "224, 224"

// These functions return text with a leading comma, or an empty string for the default value.
std::string and_fill(const std::array<std::uint8_t, 3>& fill);  // the default is black
std::string and_border(const std::array<std::uint8_t, 3>& fill, PaddingMode mode);
std::string and_interpolation(Interpolation interpolation, Interpolation standard = Interpolation::kBilinear);
std::string and_center(const std::optional<std::array<double, 2>>& center);
std::string and_version(TorchvisionVersion version);

// Always begins with a comma.
std::string and_any_fill(const std::array<std::uint8_t, 3>& fill);

}  // namespace feedline::transform
