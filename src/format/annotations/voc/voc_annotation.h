// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/image_size.h"
#include "format/annotations/object_rows.h"

namespace feedline::format {

struct VocAnnotation {
  std::vector<std::string> names;  // class of each object
  std::vector<ImageObject> objects;
  ImageSize size;  // 0 if missing in the XML
};

// Reads the XML annotation of an image. Boxes are the numbers of `bndbox`, unchanged. Values missing in an object are
// 0, and its pose is "Unspecified". kData: invalid XML, an object without a name or without four numbers.
Result<VocAnnotation> read_voc_annotation(std::string_view xml);

}  // namespace feedline::format
