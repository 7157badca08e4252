// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scans the headers of a TFRecord file to find the ends of its records, and damage.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "storage/reader.h"

namespace feedline::format {

// Reads every header of `reader` up to `bytes`, and only the data that is in the same reads. Damage is added to
// `findings` and ends the scan, because without a length the next record cannot be found. Returns an error if the
// storage fails.
Result<std::vector<std::uint64_t>> scan_records(const storage::Reader& reader, std::uint64_t bytes,
                                                const std::string& shard, Findings& findings);

}  // namespace feedline::format
