// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/tables/column.h"

namespace feedline::format {

// Adds details from the Arrow schema in the footer that Parquet's types lack: sizes of lists, shapes of tensors, units
// of durations, extension types. Empty text adds nothing. kData: the schema is damaged.
Result<void> take_arrow_types(std::string_view base64, const std::vector<ColumnType*>& columns);

}  // namespace feedline::format
