// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Pixel files.
const FormatEntry& pixel_entry();

}  // namespace feedline::format
