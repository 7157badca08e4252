// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// LitData's optimized datasets: a folder with an index.json, the path of that file, or a list of either.
const FormatEntry& litdata_entry();

}  // namespace feedline::format
