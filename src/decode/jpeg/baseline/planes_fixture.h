// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the samples of a plane that determine pixels, for tests and fuzzers that compare planes.

#include <algorithm>
#include <utility>

#include "feedline/operation.h"
#include "memory/planes.h"

namespace feedline::decode {

// Returns the samples that determine the region's pixels, as an image.
inline Box samples_of(const memory::Plane& plane, const Box& region) {
  const auto range = [](const memory::PlaneAxis& axis, int begin, int count) {
    const auto at = [&axis](int pixel, int offset) {
      return axis.halved ? std::clamp(pixel / 2 + offset, 0, axis.size - 1) : pixel;
    };
    const int first = at(begin, begin % 2 == 0 ? -1 : 0), last = at(begin + count - 1, (begin + count - 1) % 2);
    return std::pair((first >> axis.shift) - axis.first, (last >> axis.shift) - axis.first + 1);
  };
  const auto [left, right] = range(plane.x, region.left, region.width);
  const auto [top, bottom] = range(plane.y, region.top, region.height);
  return {left, top, right - left, bottom - top};
}

inline bool lies_inside(const Box& box, const memory::PixelBuffer& pixels) {
  return box.left >= 0 && box.top >= 0 && box.left + box.width <= pixels.width() &&
         box.top + box.height <= pixels.height();
}

}  // namespace feedline::decode
