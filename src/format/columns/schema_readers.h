// SPDX-License-Identifier: Apache-2.0
#pragma once

// The same fields out of shards whose columns may differ: of streams that were written apart, or an index of several.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columns/column_reader.h"
#include "format/columns/planned_dataset.h"

namespace feedline::format {

// A reader for each schema, all with the same fields. kConfig: one lacks a field or has it as another kind, or has
// other columns than the first where `fields` is empty; the error names a shard that is so.
Result<std::vector<ColumnReader>> readers_of(const PlannedDataset& dataset, const std::vector<std::string>& fields);

}  // namespace feedline::format
