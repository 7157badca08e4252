// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens files in the formats of plugins. Stateless and thread-safe.

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for all formats of plugins, which is never destroyed. open() and inspect() use the format
// with the name options.format, or else the one to which the source's extension belongs.
const FormatEntry& plugin_entry();

}  // namespace feedline::format
