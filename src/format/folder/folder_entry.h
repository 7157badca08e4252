// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// A folder of class folders.
const FormatEntry& folder_entry();

}  // namespace feedline::format
