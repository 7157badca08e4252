// SPDX-License-Identifier: Apache-2.0
#include "transform/operation/description.h"

namespace feedline::transform {

std::string in_brackets(double first, double second) { return "(" + number(first) + ", " + number(second) + ")"; }
std::string in_brackets(const Range& range) { return in_brackets(range.low, range.high); }
std::string in_brackets(const std::array<int, 2>& pair) { return "(" + number(pair[0]) + ", " + number(pair[1]) + ")"; }
std::string in_brackets(const Padding& padding) {
  return "(" + number(padding.left) + ", " + number(padding.top) + ", " + number(padding.right) + ", " +
         number(padding.bottom) + ")";
}

std::string listed(const std::vector<float>& values) {
  std::string text = "(";
  for (const float value : values) text += (text.size() > 1 ? ", " : "") + number(value);
  return text + (values.size() == 1 ? ",)" : ")");
}

std::string listed(const std::vector<std::string>& words) {
  std::string text = "(";
  for (const std::string& word : words) text += (text.size() > 1 ? ", '" : "'") + word + "'";
  return text + (words.size() == 1 ? ",)" : ")");
}

std::string listed(const std::vector<Operation>& operations) {
  std::string text = "[";
  for (const Operation& operation : operations) text += (text.size() > 1 ? ", " : "") + describe(operation);
  return text + "]";
}

std::string sides(Size size) { return number(size.height) + ", " + number(size.width); }

std::string and_any_fill(const std::array<std::uint8_t, 3>& fill) {
  const std::string red = number(int{fill[0]});
  if (fill[0] == fill[1] && fill[1] == fill[2]) return ", fill=" + red;
  return ", fill=(" + red + ", " + number(int{fill[1]}) + ", " + number(int{fill[2]}) + ")";
}

std::string and_fill(const std::array<std::uint8_t, 3>& fill) {
  return fill == std::array<std::uint8_t, 3>{} ? "" : and_any_fill(fill);
}

std::string and_border(const std::array<std::uint8_t, 3>& fill, PaddingMode mode) {
  return mode != PaddingMode::kConstant ? ", padding_mode=" + std::string(word_of(mode)) : and_fill(fill);
}

std::string and_interpolation(Interpolation interpolation, Interpolation standard) {
  return interpolation == standard ? "" : ", interpolation=" + std::string(word_of(interpolation));
}

std::string and_center(const std::optional<std::array<double, 2>>& center) {
  return center ? ", center=" + in_brackets((*center)[0], (*center)[1]) : "";
}

std::string and_version(TorchvisionVersion version) { return version == TorchvisionVersion::kV1 ? "" : ", version=v2"; }

}  // namespace feedline::transform
