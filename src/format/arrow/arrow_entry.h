// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Arrow IPC files and streams: one, a list, or a folder that `datasets` saved.
const FormatEntry& arrow_entry();

}  // namespace feedline::format
