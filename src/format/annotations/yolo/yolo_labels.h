// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "feedline/error.h"
#include "format/annotations/image_size.h"
#include "format/annotations/object_rows.h"

namespace feedline::format {

// The form of the lines of a label file.
struct YoloLines {
  std::size_t classes = 0;     // number of classes; 0 if unknown
  std::size_t points = 0;      // keypoints after each box; if 0, lines longer than a box are polygons
  std::size_t dimensions = 3;  // numbers per keypoint: x, y, and optionally visibility
};

// Reads the text of a label file. Each line has the class, and the centre, width and height of a box, or the points of
// a polygon, as fractions of the image's sides. Returns pixels. kData, with the line: any other form, an unknown class,
// a fraction more than a hundredth outside the image.
Result<ImageObjects> read_yolo_labels(std::string_view text, const YoloLines& lines, const ImageSize& image);

}  // namespace feedline::format
