// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "feedline/error.h"
#include "format/annotations/coco/coco_fields.h"
#include "format/annotations/coco/coco_table.h"

namespace feedline::format {

// Draws the outlines of an image's annotations as its field, which is one of three: "masks", each by itself; "mask",
// their labels and 1, 0 where there is nothing, and the largest number of its dtype where several lie over each other;
// "crowd_mask", 1 where a crowd is. kData: as draw_outline(), no outline, an image whose size the JSON does not say,
// more bytes than the record takes.
Result<void> draw_masks(const CocoTable& table, std::uint64_t image, const CocoFields& fields, std::size_t field,
                        memory::Record& record);

}  // namespace feedline::format
