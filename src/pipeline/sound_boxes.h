// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "feedline/error.h"
#include "feedline/operation.h"
#include "transform/targets/target_rows.h"

namespace feedline::pipeline {

// Are stored boxes of a sample such that an image can have them? kData names the first that is inverted, wholly outside
// of the image, or no numbers. Boxes without an area, and those that reach over the edges, are sound.
// image: its size; nullopt: the sample has none. Requires: four numbers a row, or no row.
Result<void> check_sound(transform::TargetRows& rows, BoxFormat format, std::optional<Size> image);

}  // namespace feedline::pipeline
