// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "feedline/operation.h"
#include "feedline/pixel_operation.h"

namespace feedline::transform {

// How Pillow's Image.rotate implements a rotation: a copy, quarter turns, or an affine transform. Pure and thread-safe.
struct RotationPlan {
  enum class Kind : std::uint8_t { kCopy, kQuarter, kHalf, kThreeQuarters, kAffine };  // counterclockwise
  Kind kind = Kind::kAffine;
  AffineMatrix matrix{};  // for kAffine: from output to input pixels
  Size out;
};
RotationPlan plan_rotation(Size image, double angle, bool expand, std::optional<Point> center);

}  // namespace feedline::transform
