// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/registry.h"

namespace feedline::format {

// TFRecord files: one or a list.
const FormatEntry& tfrecord_entry();

}  // namespace feedline::format
