// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// A folder in Pascal VOC's layout.
const FormatEntry& voc_entry();

}  // namespace feedline::format
