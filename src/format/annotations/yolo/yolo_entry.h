// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for YOLO datasets: a YAML file, or its folder.
const FormatEntry& yolo_entry();

}  // namespace feedline::format
