// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns an index into shards that can be opened. Compressed shards are decompressed once and their checksums compared
// at the same time.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "format/columns/planned_shard.h"
#include "format/mds/mds_index.h"

namespace feedline::format {

// folder: the index's folder. schemas: for each schema of the index, its number in the dataset.
std::vector<PlannedShard> plan_shards(const std::string& folder, const storage::Storage& stored_in,
                                      std::vector<MdsShard> shards, std::span<const std::size_t> schemas);

}  // namespace feedline::format
