// SPDX-License-Identifier: Apache-2.0
#pragma once

// From an index to shards that can be opened: compressed ones are made plain once, and compared with their checksums
// while they are.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/columns/planned_shard.h"
#include "format/mds/mds_index.h"

namespace feedline::format {

// folder: of the index. schemas: which of the dataset's each of the index's is.
std::vector<PlannedShard> plan_shards(const std::string& folder, const storage::Storage& stored_in,
                                      std::vector<MdsShard> shards, std::span<const std::size_t> schemas);

}  // namespace feedline::format
