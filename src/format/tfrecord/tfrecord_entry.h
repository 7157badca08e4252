// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

// Returns the registry entry for TFRecord files. A source is one file or a list.
const FormatEntry& tfrecord_entry();

}  // namespace feedline::format
