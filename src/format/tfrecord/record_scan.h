// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scans the headers of a TFRecord file for the ends of its records and for damage.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/shards/finding.h"
#include "storage/reader.h"

namespace feedline::format {

// Reads every header up to `bytes`, and as little data as possible. Adds damage to `findings`. Damage ends the scan,
// because the next record cannot be found without a length. Fails if the storage fails.
Result<std::vector<std::uint64_t>> scan_records(const storage::Reader& reader, std::uint64_t bytes,
                                                const std::string& shard, Findings& findings);

}  // namespace feedline::format
