// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parses the JSON that the `datasets` library stores in a table's schema to describe its columns.

#include <string_view>
#include <vector>

#include "format/columnar/column.h"

namespace feedline::format {

// Marks the columns that are images or class numbers according to `text`. Ignores invalid text.
void describe(std::string_view text, const std::vector<ColumnType*>& columns);

}  // namespace feedline::format
