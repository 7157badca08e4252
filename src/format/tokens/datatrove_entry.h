// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/format_entry.h"

namespace feedline::format {

const FormatEntry& datatrove_entry();

}  // namespace feedline::format
