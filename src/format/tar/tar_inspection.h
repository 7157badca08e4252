// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Scans the headers of all shards, and goes on with the next where one is damaged. Requires: options.storage.
Result<Inspection> inspect_tar(const std::string& source, const std::vector<std::string>& shards,
                               const OpenOptions& options);

}  // namespace feedline::format
