// SPDX-License-Identifier: Apache-2.0
#pragma once

// The store of tar shard indexes (kept_indexes.h).

#include <memory>
#include <string>
#include <utility>

#include "format/kept_indexes.h"
#include "format/tar/shard_index.h"

namespace feedline::format {

// Thread-safe.
class IndexStore : public KeptIndexes<ShardIndex> {
 public:
  explicit IndexStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : KeptIndexes(kShardIndex, std::move(directory), std::move(notes)) {}
};

}  // namespace feedline::format
