// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/columns/planned_shard.h"
#include "format/columns/sample_layout.h"

namespace feedline::format {

// What an index says of a whole dataset.
struct PlannedDataset {
  std::string format;                 // "mds", "litdata"
  std::vector<SampleSchema> schemas;  // what shards have: all, but of very few datasets, the same
  std::vector<PlannedShard> shards;
  std::vector<std::string> classes = {};  // label -> name; empty: a sample knows its label alone
};

// The number of a schema in the list, where it is added unless it is there. kData: there are too many: those of a
// dataset are one, or one for each of the streams that it was put together from.
Result<std::size_t> number_of(SampleSchema schema, std::vector<SampleSchema>& schemas);

}  // namespace feedline::format
