// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columns/planned_shard.h"
#include "format/columns/sample_layout.h"

namespace feedline::format {

// The dataset described by an index.
struct PlannedDataset {
  std::string format;                 // "mds", "litdata"
  std::vector<SampleSchema> schemas;  // schemas of the shards; most datasets have only one
  std::vector<PlannedShard> shards;
  std::vector<std::string> classes = {};  // names by label; empty if samples have only labels
};

// Returns the index of a schema in the list, and adds it if necessary. kData: too many schemas; a dataset has one, or
// one for each of the streams that it combines.
Result<std::size_t> number_of(SampleSchema schema, std::vector<SampleSchema>& schemas);

}  // namespace feedline::format
