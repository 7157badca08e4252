// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "cache/persisted_tables.h"

namespace feedline::format {

// Recognises an index that Feedline writes, or the folder of indexes. Patterns and lists of shards skip them: earlier
// versions wrote "SHARD.feedline-index" next to the shard, which patterns such as "train-*" match.
inline bool is_index_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.ends_with(cache::kIndexSuffix) || path.substr(path.rfind('/') + 1) == cache::kIndexFolder;
}

}  // namespace feedline::format
