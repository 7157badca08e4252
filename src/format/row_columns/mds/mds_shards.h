// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts an index to shards that can be opened. Compressed shards are decompressed only once, and their checksums are
// compared at the same time.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/row_columns/mds/mds_index.h"
#include "format/row_columns/planned_shard.h"

namespace feedline::format {

// Plans the shards of one index. `folder` is the folder of the index. `schemas` maps the index's schemas to those of
// the dataset.
std::vector<PlannedShard> plan_shards(const std::string& folder, const storage::Storage& stored_in,
                                      std::vector<MdsShard> shards, std::span<const std::size_t> schemas);

}  // namespace feedline::format
