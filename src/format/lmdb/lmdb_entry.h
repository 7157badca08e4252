// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for LMDB databases. A source is one database or a list of databases.
const FormatEntry& lmdb_entry();

}  // namespace feedline::format
