// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "feedline/error.h"
#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_table.h"

namespace feedline::format {

// Draws the outlines of an image's annotations into a field, which is one of three: "masks", one mask per annotation;
// "mask", the labels plus 1, 0 for the background, and the largest value of its dtype for overlaps; "crowd_mask", 1 for
// crowds. kData: as for draw_outline(), or an annotation without an outline, an image without a size in the JSON, or a
// record that would exceed its size limit.
Result<void> draw_masks(const CocoTable& table, std::uint64_t image, const CocoFields& fields, std::size_t field,
                        memory::Record& record);

}  // namespace feedline::format
