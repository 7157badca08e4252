// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps boxes and points in an image with an EXIF orientation from the stored image to the rotated image and back.

#include <cstddef>
#include <cstdint>
#include <span>

#include "decode/orientation.h"
#include "feedline/operation.h"
#include "memory/record.h"

namespace feedline::decode {

// Maps coordinates and labels between the stored and the rotated image.
struct FrameTurn {
  Orientation orientation;  // the rotation to apply
  Size from;                // the size of the image that the targets refer to
};
// is_turned: the sample's image was decoded with its EXIF orientation applied. If is_turned is false, the targets match
// the image without rotation.
bool needs_turn(const memory::ImageFrame& frame, bool is_turned);
// Requires: needs_turn().
FrameTurn turn_of(const memory::ImageFrame& frame);
Size size_after(const FrameTurn& turn);

// Number is float or std::int64_t. Box edges are mirrored between the image's edges, and points between the centres of
// its outermost pixels, like torchvision's flips. Requires: four numbers per box, and two per point.
template <typename Number>
void turn_boxes(const FrameTurn& turn, BoxFormat format, std::span<Number> numbers);
template <typename Number>
void turn_points(const FrameTurn& turn, std::span<Number> numbers);

}  // namespace feedline::decode
