// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/box_validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace feedline::pipeline {
namespace {

using Numbers = std::array<double, 4>;

// Returns left, top, right and bottom.
Numbers edges_of(const Numbers& box, BoxFormat format) {
  switch (format) {
    case BoxFormat::kXyxy:
      return box;
    case BoxFormat::kXywh:
      return {box[0], box[1], box[0] + box[2], box[1] + box[3]};
    case BoxFormat::kCxcywh:
      return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
  }
  return box;
}

std::string text(const Numbers& box) {
  std::string all;
  for (const double number : box) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", number);
    all += (all.empty() ? "(" : ", ") + std::string(digits);
  }
  return all + ")";
}

// Describes why the box is invalid; empty if it is valid.
std::string fault_of(const Numbers& box, BoxFormat format, const std::optional<Size>& image) {
  if (!std::ranges::all_of(box, [](double number) { return std::isfinite(number); }))
    return "has a value that is not a finite number";
  const auto [left, top, right, bottom] = edges_of(box, format);
  if (right < left || bottom < top) return "is inverted: its end precedes its start";
  if (image && (right < 0 || bottom < 0 || left > image->width || top > image->height))
    return "is entirely outside the image, which is " + std::to_string(image->height) + " x " +
           std::to_string(image->width);
  return {};
}

template <typename Number>
Result<void> check_all(std::span<const Number> numbers, BoxFormat format, const std::optional<Size>& image) {
  for (std::size_t i = 0; i + 3 < numbers.size(); i += 4) {
    Numbers box{};
    for (std::size_t k = 0; k < 4; ++k) box[k] = static_cast<double>(numbers[i + k]);
    const std::string fault = fault_of(box, format, image);
    if (fault.empty()) continue;
    return data_error("box " + std::to_string(i / 4) + ", " + text(box) + " (" + std::string(name_of(format)) + "), " +
                          fault + "; sanitize_bounding_boxes() drops such boxes, and boxes(unsound=\"keep\") " +
                          "leaves them unchanged",
                      "transform");
  }
  return {};
}

}  // namespace

Result<void> validate_boxes(transform::TargetRows& rows, BoxFormat format, std::optional<Size> image) {
  if (rows.dtype() == DType::kFloat32) return check_all<float>(rows.numbers<float>(), format, image);
  return check_all<std::int64_t>(rows.numbers<std::int64_t>(), format, image);
}

}  // namespace feedline::pipeline
