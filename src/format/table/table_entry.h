// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Tables of samples: a file, or a folder of images with one beside them.
const FormatEntry& table_entry();

}  // namespace feedline::format
