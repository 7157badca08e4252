// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the same fields from shards with different columns, such as separately written streams or the shards of a
// combined index.

#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/row_columns/column_reader.h"
#include "format/row_columns/planned_dataset.h"

namespace feedline::format {

// Returns a reader for each schema, all with the same fields. Fails with kConfig if a field is missing from a schema or
// has a different kind, or if `fields` is empty and the columns differ. The error names a shard with that schema.
Result<std::vector<ColumnReader>> readers_of(const PlannedDataset& dataset, const std::vector<std::string>& fields);

}  // namespace feedline::format
