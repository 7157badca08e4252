// SPDX-License-Identifier: Apache-2.0
#pragma once

// From an index to shards that can be opened: compressed ones are made plain once, and compared with their checksums
// while they are.

#include <string>
#include <vector>

#include "format/columns/planned_shard.h"
#include "format/mds/mds_index.h"

namespace feedline::format {

// folder: of the index.
std::vector<PlannedShard> plan_shards(const std::string& folder, const storage::Storage& stored_in,
                                      std::vector<MdsShard> shards);

}  // namespace feedline::format
