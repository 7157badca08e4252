// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warps boxes and points in torchvision v2's arithmetic: float32 at each step.

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

// A warp of an image of one size, prepared for many points. Its arguments must outlive it.
class PointMap {
 public:
  // Computes an elastic warp's displacement in `scratch`.
  PointMap(const Warp& warp, Size image, ElasticScratch& scratch);

  // corner: for a box's corner, which uses the elastic displacement of the next whole pixel; a point uses the one
  // before.
  FloatPoint operator()(FloatPoint point, bool corner) const;
  // The offset that an expanding rotation subtracts; otherwise 0.
  FloatPoint origin() const { return origin_; }
  // torchvision moves integer boxes as integers up to this size in a perspective or elastic warp, and as floats above.
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

// The size that boxes and points are clipped to. For an expanding rotation torchvision computes it separately, and it
// may be a pixel less than the image's.
Size canvas_after(const Warp& warp, Size image);

// The bounding box of its four moved corners.
Corners<float> moved_corners(const PointMap& map, const Corners<float>& corners);

}  // namespace feedline::transform
