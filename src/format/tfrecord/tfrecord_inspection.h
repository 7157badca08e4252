// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Reads every record of all shards, whose features stand nowhere else, and goes on with the next record where one is
// damaged, and with the next shard where a length is. Requires: options.storage.
Result<Inspection> inspect_tfrecord(const std::string& source, const std::vector<std::string>& shards,
                                    const OpenOptions& options);

}  // namespace feedline::format
