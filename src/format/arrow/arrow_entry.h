// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Arrow IPC files and streams: a single file, a list, or a folder saved by `datasets`.
const FormatEntry& arrow_entry();

}  // namespace feedline::format
