// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for folders with one subfolder per class.
const FormatEntry& folder_entry();

}  // namespace feedline::format
