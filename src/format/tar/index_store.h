// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads and stores the indexes of tar shards; see persisted_indexes.h.

#include <memory>
#include <string>
#include <utility>

#include "format/index/persisted_indexes.h"
#include "format/tar/shard_index.h"

namespace feedline::format {

// Thread-safe.
class IndexStore : public PersistedIndexes<ShardIndex> {
 public:
  explicit IndexStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : PersistedIndexes(kShardIndex, std::move(directory), std::move(notes)) {}
};

}  // namespace feedline::format
