// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a warp brings boxes and points, in torchvision v2's arithmetic: float32, one operation after the other.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <variant>

#include "transform/targets/target_numbers.h"
#include "transform/warp.h"

namespace feedline::transform {

using FloatPoint = std::array<float, 2>;

// A warp of an image of one size, ready for many points. What it is made of outlives it.
class PointMap {
 public:
  // Makes an elastic warp's displacement in `scratch`.
  PointMap(const Warp& warp, Size image, ElasticScratch& scratch);

  // corner: of a box, whose elastic displacement is that of the next whole pixel; a point's is of the one before.
  FloatPoint operator()(FloatPoint point, bool corner) const;
  // What a rotation that expands takes off; else 0.
  FloatPoint origin() const { return origin_; }
  // torchvision moves integer boxes as such up to here in a perspective or elastic warp, and else as floats.
  bool converts_first() const { return converts_first_; }

 private:
  struct Linear {
    std::array<float, 6> matrix;
  };
  struct Projective {
    std::array<float, 6> above;
    std::array<float, 3> below;
  };
  struct Elastic {
    std::span<const float> displacement;
    Size size;
  };
  FloatPoint moved(const Linear& map, FloatPoint point, bool corner) const;
  FloatPoint moved(const Projective& map, FloatPoint point, bool corner) const;
  FloatPoint moved(const Elastic& map, FloatPoint point, bool corner) const;

  std::variant<Linear, Projective, Elastic> map_;
  FloatPoint origin_{};
  bool converts_first_ = true;
};

// The size that boxes and points are cut off at. For a rotation that expands torchvision computes one of its own, which
// may be a pixel less than the image's.
Size canvas_after(const Warp& warp, Size image);

// The box around its four moved corners.
Corners<float> moved_corners(const PointMap& map, const Corners<float>& corners);

}  // namespace feedline::transform
