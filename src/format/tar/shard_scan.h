// SPDX-License-Identifier: Apache-2.0
#pragma once

// From a tar file's members to its samples, by WebDataset's rules: consecutive members of one key are one sample.

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
  std::map<std::string, std::uint64_t> extensions;  // members of each, dropped ones too
};

// Reads every header of `reader` up to `stat.bytes`. What is wrong goes to `findings`; the index holds what could be
// read all the same, and is only fit for use where findings has no error. An error is one of the storage.
// class_names: what the index is to say of them.
Result<ShardScan> scan_shard(const storage::Reader& reader, const storage::ObjectStat& stat, const std::string& shard,
                             Findings& findings, std::vector<std::string> class_names = {});

}  // namespace feedline::format
