// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups a tar file's members into samples by WebDataset's rules: consecutive members with the same key are one sample.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "format/tar/shard_index.h"
#include "storage/reader.h"

namespace feedline::format {

struct ShardScan {
  ShardIndex index;
  std::map<std::string, std::uint64_t> extensions;  // number of members of each, including dropped ones
};

// Reads every header of `reader` up to `stat.bytes`. Damage is added to `findings`; the index contains everything that
// could be read, but must only be used if findings has no error. Returns an error if the storage fails. class_names:
// stored in the index.
Result<ShardScan> scan_shard(const storage::Reader& reader, const storage::ObjectStat& stat, const std::string& shard,
                             Findings& findings, std::vector<std::string> class_names = {});

}  // namespace feedline::format
