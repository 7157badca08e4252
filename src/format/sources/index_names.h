// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cache/persisted_tables.h"

namespace feedline::format {

// Returns whether a path is an index written by Feedline, or the folder of indexes. Patterns and lists of shards skip
// these paths: earlier versions wrote "SHARD.feedline-index" next to the shard, and a pattern such as "train-*" would
// match this file.
inline bool is_index_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.ends_with(cache::kIndexSuffix) || path.substr(path.rfind('/') + 1) == cache::kIndexFolder;
}

}  // namespace feedline::format
