// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/targets/target_rows.h"

namespace feedline::pipeline {

// Checks that the stored boxes of a sample are valid. A kData error names the first box that is inverted, entirely
// outside the image, or not finite. Boxes without an area, and those that extend beyond the edges, are valid. image:
// the size of the sample's image; nullopt if it has none. Requires: four numbers per row, or no rows.
Result<void> validate_boxes(transform::TargetRows& rows, BoxFormat format, std::optional<Size> image);

}  // namespace feedline::pipeline
