// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "text/json_reader.h"

namespace feedline::format {

// Reads a whole COCO file: its lists `images`, `annotations` and `categories`, in any order. kData, with the offset:
// invalid JSON; an image or category with a missing or duplicate id; an image without a file name, or with one outside
// the folder. An annotation's invalid value is recorded in the table, and becomes an error of its sample only if a
// field needs it. kStorage: the file cannot be read.
Result<CocoParts> scan_coco(text::JsonReader& json);

}  // namespace feedline::format
