// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/error.h"
#include "format/annotations/coco/coco_table.h"
#include "text/json_reader.h"

namespace feedline::format {

// Reads a COCO file from its beginning to its end: its lists `images`, `annotations` and `categories`, in whichever
// order. kData, with the byte: it is not JSON; an image or category without an id, or with one that another has; an
// image without a file name, or with one that leads out of a folder. What an annotation's values cannot be used for is
// kept with it, and is an error of its sample where somebody asks for them. kStorage: it cannot be read.
Result<CocoParts> scan_coco(text::JsonReader& json);

}  // namespace feedline::format
