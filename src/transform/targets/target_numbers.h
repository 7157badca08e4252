// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arithmetic of boxes and points, as in torch: each step is in float32, and integers are converted to float32 where
// torch converts them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "feedline/operation.h"
#include "transform/augment/iou_crop.h"

namespace feedline::transform {

template <typename Number>
using BoxNumbers = std::array<Number, 4>;

// Like torch's .to(dtype), which truncates. For values outside int64, torch's result is unspecified.
template <typename Number>
Number converted(float value) {
  if constexpr (std::is_same_v<Number, float>) {
    return value;
  } else {
    constexpr float kLimit = 9223372036854775808.0f;
    if (!(value >= -kLimit && value < kLimit)) return std::numeric_limits<Number>::min();
    return static_cast<Number>(value);
  }
}

// Returns the ratio of two sides, like a float32 tensor.
inline float ratio_of(int out, int in) { return static_cast<float>(static_cast<double>(out) / in); }

// value.mul(ratio).to(dtype)
template <typename Number>
Number scaled(Number value, float ratio) {
  return converted<Number>(static_cast<float>(value) * ratio);
}

// value.sub(from).neg()
template <typename Number>
Number mirrored(Number value, int from) {
  return -(value - static_cast<Number>(from));
}

template <typename Number>
Corners<Number> corners_of(const BoxNumbers<Number>& box, BoxFormat format) {
  switch (format) {
    case BoxFormat::kXyxy:
      return box;
    case BoxFormat::kXywh:
      return {box[0], box[1], box[2] + box[0], box[3] + box[1]};
    case BoxFormat::kCxcywh: {
      const float width = static_cast<float>(box[2]), height = static_cast<float>(box[3]);
      const float left = static_cast<float>(box[0]) - width / 2, top = static_cast<float>(box[1]) - height / 2;
      return {converted<Number>(left), converted<Number>(top), converted<Number>(width + left),
              converted<Number>(height + top)};
    }
  }
  return box;
}

inline BoxNumbers<float> box_of(const Corners<float>& corners, BoxFormat format) {
  const float width = corners[2] - corners[0], height = corners[3] - corners[1];
  switch (format) {
    case BoxFormat::kXyxy:
      return corners;
    case BoxFormat::kXywh:
      return {corners[0], corners[1], width, height};
    case BoxFormat::kCxcywh:
      return {(corners[0] * 2 + width) / 2, (corners[1] * 2 + height) / 2, width, height};
  }
  return corners;
}

// Preserves NaN.
inline Corners<float> clamped(const Corners<float>& corners, Size canvas) {
  const auto clamp = [](float value, int most) { return std::min(std::max(value, 0.f), static_cast<float>(most)); };
  return {clamp(corners[0], canvas.width), clamp(corners[1], canvas.height), clamp(corners[2], canvas.width),
          clamp(corners[3], canvas.height)};
}

template <typename Number>
BoxNumbers<float> floats_of(const BoxNumbers<Number>& box) {
  return {static_cast<float>(box[0]), static_cast<float>(box[1]), static_cast<float>(box[2]),
          static_cast<float>(box[3])};
}

template <typename Number>
BoxNumbers<Number> converted(const BoxNumbers<float>& box) {
  return {converted<Number>(box[0]), converted<Number>(box[1]), converted<Number>(box[2]), converted<Number>(box[3])};
}

// Like clamp_bounding_boxes, which converts integers to floats and back.
template <typename Number>
BoxNumbers<Number> clamped_box(const BoxNumbers<Number>& box, BoxFormat format, Size canvas) {
  return converted<Number>(box_of(clamped(corners_of(floats_of(box), format), canvas), format));
}

// Returns whether sanitize_bounding_boxes retains the box.
template <typename Number>
bool is_sound(const BoxNumbers<Number>& box, BoxFormat format, Size canvas, const op::SanitizeBoundingBoxes& least) {
  const Corners<Number> corners = corners_of(box, format);
  const Number width = corners[2] - corners[0], height = corners[3] - corners[1];
  const auto reaches = [](Number value, double bound) {
    return static_cast<float>(value) >= static_cast<float>(bound);
  };
  const auto is_inside = [](Number value, int most) { return value >= 0 && value <= static_cast<Number>(most); };
  return reaches(width, least.min_size) && reaches(height, least.min_size) && reaches(width * height, least.min_area) &&
         is_inside(corners[0], canvas.width) && is_inside(corners[2], canvas.width) &&
         is_inside(corners[1], canvas.height) && is_inside(corners[3], canvas.height);
}

}  // namespace feedline::transform
