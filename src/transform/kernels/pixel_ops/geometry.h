// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "feedline/operation.h"
#include "feedline/pixel_operation.h"

namespace feedline::transform {

// What Pillow's Image.rotate does: a copy, turns by a quarter, or an affine transform. Pure, so thread-safe.
struct RotationPlan {
  enum class Kind : std::uint8_t { kCopy, kQuarter, kHalf, kThreeQuarters, kAffine };  // counterclockwise
  Kind kind = Kind::kAffine;
  AffineMatrix matrix{};  // of kAffine: from the pixels that come out to those that go in
  Size out;
};
RotationPlan plan_rotation(Size image, double angle, bool expand, std::optional<Point> center);

}  // namespace feedline::transform
