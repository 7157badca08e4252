// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for Parquet files. A source is a file, a list, a pattern, or a folder that contains one
// split of a dataset.
const FormatEntry& parquet_entry();

}  // namespace feedline::format
