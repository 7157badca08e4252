// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Parquet files: one file, a list, a pattern, or a folder with one split of a dataset.
const FormatEntry& parquet_entry();

}  // namespace feedline::format
