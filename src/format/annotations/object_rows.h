// SPDX-License-Identifier: Apache-2.0
#pragma once

// The objects of one image, read from a file of its own, and their rows in the fields of a record.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/annotations/annotation_part.h"
#include "memory/record.h"

namespace feedline::format {

struct ImageObject {
  std::array<float, 4> box{};  // left, top, right, bottom, in pixels
  std::int64_t label = 0;
  std::int64_t difficult = 0, truncated = 0;
  std::string pose;
  std::vector<double> polygon;   // x, y, in pixels; empty: it has none
  std::vector<float> keypoints;  // x, y of each, in pixels
  std::vector<std::int64_t> visibility;
};

struct ImageObjects {
  std::vector<ImageObject> objects;
  int width = 0, height = 0;  // where masks are drawn
  std::size_t points = 0;     // of an object's keypoints
};

// Fills in the fields that objects make: all but images and masks that are files. pieces: what lies in record.more
// already. kData: an object without a polygon where masks are drawn; more bytes than the record takes.
Result<void> fill_objects(const ImageObjects& objects, std::span<const PartField> fields, std::size_t pieces,
                          memory::Record& record);

}  // namespace feedline::format
