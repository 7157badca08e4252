// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/row_columns/planned_shard.h"
#include "format/row_columns/sample_layout.h"

namespace feedline::format {

// A dataset as described by its index.
struct PlannedDataset {
  std::string format;                 // "mds", "litdata"
  std::vector<SampleSchema> schemas;  // schemas of the shards; most datasets have only one
  std::vector<PlannedShard> shards;
  std::vector<std::string> classes = {};  // names by label; empty if samples have only labels
};

// Returns the index of a schema in the list, and adds the schema if necessary. Fails with kData if there are too many
// schemas. A dataset usually has one schema, or one per stream if it combines several streams.
Result<std::size_t> number_of(SampleSchema schema, std::vector<SampleSchema>& schemas);

}  // namespace feedline::format
