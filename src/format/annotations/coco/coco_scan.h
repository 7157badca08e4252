// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "text/json_reader.h"

namespace feedline::format {

// Reads the lists `images`, `annotations` and `categories` of a COCO file, which may be in any order. Invalid values in
// annotations are recorded in the table, and become errors of samples only if a field needs them. Fails with kData and
// the offset if the JSON is invalid, an image or category has a missing or duplicate id, or an image has no file name
// or one outside the folder. Fails with kStorage if the file cannot be read.
Result<CocoParts> scan_coco(text::JsonReader& json);

}  // namespace feedline::format
