// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// The YAML file of a set in YOLO's layout, or the folder that has it.
const FormatEntry& yolo_entry();

}  // namespace feedline::format
