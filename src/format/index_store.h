// SPDX-License-Identifier: Apache-2.0
#pragma once

// Indexes of tar shards, as they are kept (kept_indexes.h).

#include <memory>
#include <optional>
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

  // Whichever version of the shard it says that it is of. Only where forget() could remove it: one that turns out to be
  // of another shard by now would have to be met again by each who opens it.
  std::optional<ShardIndex> load_unchecked(const storage::Storage& storage, const std::string& shard) const;
  void forget(const storage::Storage& storage, const std::string& shard) const { tables().forget(storage, shard); }
};

}  // namespace feedline::format
