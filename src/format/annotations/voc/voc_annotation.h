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

// Reads the XML annotation of an image. Boxes have the numbers in `bndbox` unchanged. If a value of an object is
// missing, it is set to 0, or to "Unspecified" for the pose. Fails with kData if the XML is invalid, or an object has
// no name or fewer than four numbers.
Result<VocAnnotation> read_voc_annotation(std::string_view xml);

}  // namespace feedline::format
