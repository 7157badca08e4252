// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// The YAML file of a dataset in YOLO's layout, or its folder.
const FormatEntry& yolo_entry();

}  // namespace feedline::format
