// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "feedline/error.h"
#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_table.h"

namespace feedline::format {

// Draws the outlines from an image's annotations into a field. "masks" has one mask per annotation. "mask" has the
// labels plus 1, 0 for the background, and the largest value of its dtype for overlaps. "crowd_mask" is 1 for crowds.
// Fails with kData in the same cases as draw_outline(), and if an annotation has no outline, the JSON file does not
// contain the image's size, or the record would exceed its size limit.
Result<void> draw_masks(const CocoTable& table, std::uint64_t image, const CocoFields& fields, std::size_t field,
                        memory::Record& record);

}  // namespace feedline::format
