// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for .npy and .npz files. A source is one file or a list.
const FormatEntry& numpy_entry();

}  // namespace feedline::format
