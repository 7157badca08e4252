// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for tables of samples: a file, or a folder of images that contains a table.
const FormatEntry& table_entry();

}  // namespace feedline::format
