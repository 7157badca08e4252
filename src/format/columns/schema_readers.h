// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the same fields from shards with different columns, as in separately written streams or a combined index.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columns/column_reader.h"
#include "format/columns/planned_dataset.h"

namespace feedline::format {

// Returns a reader for each schema, all with the same fields. kConfig: a schema lacks a field or has it as another
// kind; or, if `fields` is empty, its columns differ from those of the first. The error names a shard with that schema.
Result<std::vector<ColumnReader>> readers_of(const PlannedDataset& dataset, const std::vector<std::string>& fields);

}  // namespace feedline::format
