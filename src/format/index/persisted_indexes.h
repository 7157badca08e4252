// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores the indexes of shards in a hidden folder next to the shard (cache/persisted_tables.h), or in a folder that the
// user chose. If the shard's folder is not writable, or other programs read all of its files, indexes are stored in the
// user's cache folder.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cache/persisted_tables.h"
#include "cache/places.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Stores the indexes of a format's shards. `Index` has the functions parse(), file_bytes() and version(), which returns
// the version of its shard. An index is at most kSmallest bytes larger than its shard, because the index entry for a
// record or member is smaller than the record's overhead in the shard. Thread-safe.
template <typename Index>
class PersistedIndexes {
 public:
  // `directory` is the folder that the user chose, or empty. `notes` collects messages to the user about stored
  // indexes. If `next_to_shard` is true, indexes are stored next to the shard if possible.
  explicit PersistedIndexes(cache::FrameKind kind, std::string directory, std::shared_ptr<cache::Notes> notes = nullptr,
                            bool next_to_shard = true)
      : notes_(std::move(notes)), tables_({kind, cache::kIndexSuffix, next_to_shard}, std::move(directory), notes_) {}

  // Returns nullopt if there is no index, or if all indexes are stale, damaged or owned by another user.
  std::optional<Index> load(const storage::Storage& storage, const std::string& shard,
                            const storage::Version& version) const {
    std::optional<Index> index;
    tables_.read(storage, shard, version.bytes + kSmallest, [&](cache::PersistedTables::Bytes bytes) {
      const std::size_t size = bytes.file.size();
      index = Index::parse(std::move(bytes.buffer), size, version);
      return index.has_value();
    });
    return index;
  }
  // Loads an index for any version of the shard, but only if forget() could remove this index. Otherwise every process
  // that opens the shard would load a stale index again.
  std::optional<Index> load_unchecked(const storage::Storage& storage, const std::string& shard) const {
    std::optional<Index> index;
    tables_.read(storage, shard, kMostIndex, [&](cache::PersistedTables::Bytes bytes) {
      if (!cache::may_remove(bytes.location)) return false;
      const std::size_t size = bytes.file.size();
      index = Index::parse(std::move(bytes.buffer), size, {});
      return index.has_value();
    });
    return index;
  }
  // Like load_unchecked(), but only returns an index that can be used without a request for the shard. This requires
  // that the storage supports reads of a specific version, and that the known version of the object does not contradict
  // the index. Returns nullopt otherwise.
  std::optional<Index> at_hand(const storage::Storage& storage, const std::string& shard) const {
    if (!storage.holds_versions()) return {};
    auto index = load_unchecked(storage, shard);
    if (index && !storage.check_known(shard, index->version())) return {};
    return index;
  }
  void forget(const storage::Storage& storage, const std::string& shard) const { tables_.forget(storage, shard); }
  // Fails only if the user chose the folder. Otherwise an index that cannot be stored is rebuilt the next time the
  // shard is opened.
  Result<void> save(const storage::Storage& storage, const std::string& shard, const Index& index) const {
    return tables_.save(storage, shard, index.file_bytes());
  }
  cache::Notes* notes() const { return notes_.get(); }

 private:
  // limit if the shard's size is not known yet; the contents are verified by their checksum
  static constexpr std::uint64_t kMostIndex = std::uint64_t{64} << 30;
  static constexpr std::uint64_t kSmallest = 4096;  // size of the index of an empty shard

  const std::shared_ptr<cache::Notes> notes_;
  const cache::PersistedTables tables_;
};

}  // namespace feedline::format
