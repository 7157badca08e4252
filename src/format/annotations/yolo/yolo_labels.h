// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "feedline/error.h"
#include "format/annotations/image_size.h"
#include "format/annotations/object_rows.h"

namespace feedline::format {

// The format of the lines in label files.
struct YoloLines {
  std::size_t classes = 0;     // number of classes; 0 if unknown
  std::size_t points = 0;      // keypoints after each box; if 0, lines longer than a box are polygons
  std::size_t dimensions = 3;  // numbers per keypoint: x, y, and optionally visibility
};

// Parses a label file. Each line has a class, followed by the centre, width and height of a box or by the points of a
// polygon, as fractions of the image's size. Returns coordinates in pixels. Fails with kData and the line number if a
// line has a different format, a class is unknown, or a fraction is more than 0.01 outside the image.
Result<ImageObjects> read_yolo_labels(std::string_view text, const YoloLines& lines, const ImageSize& image);

}  // namespace feedline::format
