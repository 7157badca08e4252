// SPDX-License-Identifier: Apache-2.0
#pragma once

// From header to header through a TFRecord file: where its records end, and what is wrong with it.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "storage/reader.h"

namespace feedline::format {

// Reads every header of `reader` up to `bytes`, and of the data what comes with them. What is wrong goes to `findings`,
// and ends the scan: without a length nothing says where the next record begins. An error is one of the storage.
Result<std::vector<std::uint64_t>> scan_records(const storage::Reader& reader, std::uint64_t bytes,
                                                const std::string& shard, Findings& findings);

}  // namespace feedline::format
