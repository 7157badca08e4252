// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where indexes of shards are kept: beside the shard as "<shard>.feedline-index", in the user's cache folder where
// the shard's folder takes no files, or in a folder that the user chose.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cache/kept_tables.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Of a format whose shards have an Index, with its FrameKind. No index is larger than its shard and kSmallest: what it
// has for a record or a member is less than the shard has for it. Thread-safe.
template <typename Index>
class KeptIndexes {
 public:
  // directory: the user's choice; empty: none. notes: what a user wants to know of what is kept.
  explicit KeptIndexes(cache::FrameKind kind, std::string directory, std::shared_ptr<cache::Notes> notes = nullptr)
      : notes_(std::move(notes)), tables_({kind, ".feedline-index", true}, std::move(directory), notes_) {}

  // nullopt: none is kept, or only stale, damaged or foreign ones.
  std::optional<Index> load(const storage::Storage& storage, const std::string& shard,
                            const storage::Version& version) const {
    std::optional<Index> index;
    tables_.read(storage, shard, version.bytes + kSmallest, [&](cache::KeptTables::Bytes bytes) {
      const std::size_t size = bytes.file.size();
      index = Index::parse(std::move(bytes.buffer), size, version);
      return index.has_value();
    });
    return index;
  }
  // Fails only where the user chose the folder: an index that cannot be kept is built again the next time.
  Result<void> save(const storage::Storage& storage, const std::string& shard, const Index& index) const {
    return tables_.save(storage, shard, index.file_bytes());
  }
  cache::Notes* notes() const { return notes_.get(); }

 protected:
  const cache::KeptTables& tables() const { return tables_; }

 private:
  static constexpr std::uint64_t kSmallest = 4096;  // of a shard with nothing in it

  const std::shared_ptr<cache::Notes> notes_;
  const cache::KeptTables tables_;
};

}  // namespace feedline::format
