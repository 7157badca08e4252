// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// .npy and .npz files: one file or a list.
const FormatEntry& numpy_entry();

}  // namespace feedline::format
