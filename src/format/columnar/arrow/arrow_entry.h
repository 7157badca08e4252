// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for Arrow IPC files and streams: a source is one or more files, or a folder saved by
// `datasets`.
const FormatEntry& arrow_entry();

}  // namespace feedline::format
