// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for COCO datasets: a JSON file and a folder of images.
const FormatEntry& coco_entry();

}  // namespace feedline::format
