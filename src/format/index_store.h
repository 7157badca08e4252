// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where indexes of shards are kept: beside the shard as "<shard>.feedline-index", in the user's cache folder where
// the shard's folder takes no files, or in a folder that the user chose.

#include <optional>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/tar/shard_index.h"

namespace feedline::format {

// Thread-safe.
class IndexStore {
 public:
  // `directory`: the user's choice; empty: none.
  explicit IndexStore(std::string directory) : directory_(std::move(directory)) {}

  // nullopt: none is kept, or only stale, damaged or foreign ones.
  std::optional<ShardIndex> load(const std::string& shard, const storage::ObjectStat& stat) const;
  // Fails only where the user chose the folder: an index that cannot be kept is built again the next time.
  Result<void> save(const std::string& shard, const ShardIndex& index) const;

 private:
  std::vector<std::string> places(const std::string& shard) const;

  std::string directory_;
};

}  // namespace feedline::format
