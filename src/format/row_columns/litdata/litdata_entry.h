// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for LitData's optimized datasets: a folder with an index.json, the path of this file, or a
// list of folders or files.
const FormatEntry& litdata_entry();

}  // namespace feedline::format
