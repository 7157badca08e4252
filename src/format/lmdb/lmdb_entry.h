// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// LMDB databases: one or a list.
const FormatEntry& lmdb_entry();

}  // namespace feedline::format
