// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for all formats of plugins. open() and inspect() use the format with the name
// options.format, or else the one to which the source's extension belongs.
const FormatEntry& plugin_entry();

}  // namespace feedline::format
