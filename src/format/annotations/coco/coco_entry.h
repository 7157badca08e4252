// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// The JSON file of a dataset in COCO's layout.
const FormatEntry& coco_entry();

}  // namespace feedline::format
