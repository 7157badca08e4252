// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where indexes of shards are kept: beside the shard as "<shard>.feedline-index", in the user's cache folder where
// the shard's folder takes no files, or in a folder that the user chose.

#include <memory>
#include <optional>
#include <string>

#include "cache/kept_tables.h"
#include "feedline/error.h"
#include "format/tar/shard_index.h"
#include "storage/storage.h"

namespace feedline::format {

// Thread-safe.
class IndexStore {
 public:
  // directory: the user's choice; empty: none. notes: what a user wants to know of what is kept.
  explicit IndexStore(std::string directory, std::shared_ptr<cache::Notes> notes = nullptr);

  // nullopt: none is kept, or only stale, damaged or foreign ones.
  std::optional<ShardIndex> load(const storage::Storage& storage, const std::string& shard,
                                 const storage::Version& version) const;
  // Whichever version of the shard it says that it is of. Only where forget() could remove it: one that turns out to be
  // of another shard by now would have to be met again by each who opens it.
  std::optional<ShardIndex> load_unchecked(const storage::Storage& storage, const std::string& shard) const;
  void forget(const storage::Storage& storage, const std::string& shard) const { tables_.forget(storage, shard); }
  // Fails only where the user chose the folder: an index that cannot be kept is built again the next time.
  Result<void> save(const storage::Storage& storage, const std::string& shard, const ShardIndex& index) const;
  cache::Notes* notes() const { return notes_.get(); }

 private:
  const std::shared_ptr<cache::Notes> notes_;
  const cache::KeptTables tables_;
};

}  // namespace feedline::format
