// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Scans the headers of all shards, and continues with the next shard after a damaged one. Requires: options.storage.
Result<Inspection> inspect_tar(const std::string& source, const std::vector<std::string>& shards,
                               const OpenOptions& options);

}  // namespace feedline::format
