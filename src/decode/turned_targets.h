// SPDX-License-Identifier: Apache-2.0
#pragma once

// Boxes and points of an image that EXIF turns: from the stored image to the turned one, and back.

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/orientation.h"
#include "feedline/operation.h"
#include "memory/record.h"

namespace feedline::decode {

// How boxes, points and labels made for `frame` become those of the other image of it.
struct FrameTurn {
  Orientation orientation;  // of the image that they are turned with
  Size from;                // the size of the image that they were made for
};
// is_turned: the image of the sample is decoded as EXIF turns it. False: they fit it as they are.
bool needs_turn(const memory::ImageFrame& frame, bool is_turned);
// Requires: needs_turn().
FrameTurn turn_of(const memory::ImageFrame& frame);
Size size_after(const FrameTurn& turn);

// Number: float or std::int64_t. Edges of boxes are turned about the image's edges, points about the middles of its
// outer pixels, as torchvision's flips do it. Requires: four numbers a box, two a point.
template <typename Number>
void turn_boxes(const FrameTurn& turn, BoxFormat format, std::span<Number> numbers);
template <typename Number>
void turn_points(const FrameTurn& turn, std::span<Number> numbers);

}  // namespace feedline::decode
