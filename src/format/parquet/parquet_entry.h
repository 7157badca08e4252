// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Parquet files: one, a list, a pattern, or a folder of a dataset's split.
const FormatEntry& parquet_entry();

}  // namespace feedline::format
