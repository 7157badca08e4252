// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups a tar file's members into samples by WebDataset's rules: consecutive members with the same key are one sample.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/shards/finding.h"
#include "format/tar/shard_index.h"
#include "storage/reader.h"

namespace feedline::format {

struct ShardScan {
  ShardIndex index;
  std::map<std::string, std::uint64_t> extensions;  // number of members of each, including dropped ones
};

// Reads every header up to `stat.bytes`. Adds damage to `findings`. The index contains everything that could be read,
// but must be used only if there are no errors in `findings`. `class_names` are stored in the index. Fails if the
// storage fails.
Result<ShardScan> scan_shard(const storage::Reader& reader, const storage::ObjectStat& stat, const std::string& shard,
                             Findings& findings, std::vector<std::string> class_names = {});

}  // namespace feedline::format
