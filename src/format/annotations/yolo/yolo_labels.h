// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "feedline/error.h"
#include "format/annotations/image_size.h"
#include "format/annotations/object_rows.h"

namespace feedline::format {

// What the lines of a label file may be.
struct YoloLines {
  std::size_t classes = 0;     // labels are below it; 0: nobody knows how many there are
  std::size_t points = 0;      // keypoints behind each box; 0: lines of more than a box are polygons
  std::size_t dimensions = 3;  // numbers of a keypoint: x, y, and maybe visibility
};

// Reads the text of a label file: in each line the class, and the centre, width and height of a box, or the points of a
// polygon, as shares of the image's sides. Gives pixels. kData, with the line: anything else, a class that there is
// not, a share that lies outside of the image by more than a hundredth.
Result<ImageObjects> read_yolo_labels(std::string_view text, const YoloLines& lines, const ImageSize& image);

}  // namespace feedline::format
