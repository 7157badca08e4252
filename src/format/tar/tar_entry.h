// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Tar files: one or a list.
const FormatEntry& tar_entry();

}  // namespace feedline::format
