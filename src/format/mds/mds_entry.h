// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// MosaicML streaming datasets: a folder with an index.json, the path of that file, or a list of either.
const FormatEntry& mds_entry();

}  // namespace feedline::format
