// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Reads every record of all shards, because features are only in the records. Continues with the next record after a
// damaged one, and with the next shard after a damaged length. Requires: options.storage.
Result<Inspection> inspect_tfrecord(const std::string& source, const std::vector<std::string>& shards,
                                    const OpenOptions& options);

}  // namespace feedline::format
