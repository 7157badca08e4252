// SPDX-License-Identifier: Apache-2.0
#pragma once

// The objects in an image whose annotations are in a separate file, and their rows in the fields of a record.

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
  std::vector<double> polygon;   // x, y, in pixels; empty if there is none
  std::vector<float> keypoints;  // x, y of each keypoint, in pixels
  std::vector<std::int64_t> visibility;
};

struct ImageObjects {
  std::vector<ImageObject> objects;
  int width = 0, height = 0;  // needed only for masks
  std::size_t points = 0;     // keypoints per object
};

// Fills all fields except images, and masks that are stored as files. `pieces` is the number of buffers already in
// record.more. Fails with kData if masks are drawn and an object has no polygon, or if the record would exceed its size
// limit.
Result<void> fill_objects(const ImageObjects& objects, std::span<const PartField> fields, std::size_t pieces,
                          memory::Record& record);

}  // namespace feedline::format
