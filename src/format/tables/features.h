// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the JSON that the `datasets` library stores in a table's schema to describe its columns.

#include <string_view>
#include <vector>

#include "format/tables/column.h"

namespace feedline::format {

// Applies `text` to the columns: which are images, and which integers are class numbers. Ignores text that is not such
// JSON.
void describe(std::string_view text, const std::vector<ColumnType*>& columns);

}  // namespace feedline::format
