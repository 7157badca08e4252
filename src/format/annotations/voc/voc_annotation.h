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
  std::vector<std::string> names;  // of the objects' classes
  std::vector<ImageObject> objects;
  ImageSize size;  // 0 if the XML has none
};

// Reads the XML of an image's annotation. Boxes are the numbers of `bndbox` as they stand there. What an object does
// not say is 0, and its pose "Unspecified". kData: no such XML, an object without a name or without four numbers.
Result<VocAnnotation> read_voc_annotation(std::string_view xml);

}  // namespace feedline::format
