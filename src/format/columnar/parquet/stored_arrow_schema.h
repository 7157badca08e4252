// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/columnar/column.h"

namespace feedline::format {

// Adds details that Parquet's types lack and that the Arrow schema in the footer contains: sizes of lists, shapes of
// tensors, units of durations, and extension types. Does nothing if `base64` is empty. Fails with kData if the schema
// is damaged.
Result<void> take_arrow_types(std::string_view base64, const std::vector<ColumnType*>& columns);

}  // namespace feedline::format
