// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// Tables of samples: a file, or a folder of images with a table in it.
const FormatEntry& table_entry();

}  // namespace feedline::format
