// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// MosaicML streaming's datasets: a folder with an index.json, the index itself, or a list of them.
const FormatEntry& mds_entry();

}  // namespace feedline::format
