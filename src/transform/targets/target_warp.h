// SPDX-License-Identifier: Apache-2.0
#pragma once

// Warps boxes and points with torchvision v2's arithmetic, in float32 at each step.

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

// A warp for images of one size, prepared for many points. The arguments must outlive this object.
class PointMap {
 public:
  // Computes the displacement of an elastic warp in `scratch`.
  PointMap(const Warp& warp, Size image, ElasticScratch& scratch);

  // corner: true for the corner of a box, which uses the elastic displacement at the next whole pixel; a point uses the
  // previous one.
  FloatPoint operator()(FloatPoint point, bool corner) const;
  // Returns the offset that an expanding rotation subtracts; 0 for other warps.
  FloatPoint origin() const { return origin_; }
  // In a perspective or elastic warp, torchvision moves integer boxes as integers up to this size, and as floats above
  // it.
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

// Returns the size to which boxes and points are clipped. For an expanding rotation, torchvision computes this size
// separately, and it may be a pixel smaller than the image.
Size canvas_after(const Warp& warp, Size image);

// Returns the bounding box of the four corners after the warp.
Corners<float> moved_corners(const PointMap& map, const Corners<float>& corners);

}  // namespace feedline::transform
