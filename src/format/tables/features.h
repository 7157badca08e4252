// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the `datasets` library writes of a table's columns into its schema, as JSON.

#include <string_view>
#include <vector>

#include "format/tables/column.h"

namespace feedline::format {

// Takes over what `text` says of the columns: which are images, and which integers stand for names. Text that is no
// such JSON says nothing.
void describe(std::string_view text, const std::vector<ColumnType*>& columns);

}  // namespace feedline::format
