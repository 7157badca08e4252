// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of indexes of shards: a hidden folder next to the shard (cache/kept_tables.h); the user's cache folder if
// the shard's folder is not writable or other programs read all of its files; or a folder that the user chose.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cache/kept_tables.h"
#include "cache/places.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Of a format whose shards have an Index, which says of which version() its shard is, with its FrameKind. No index is
// larger than its shard and kSmallest: what it has for a record or a member is less than the shard has for it.
// Thread-safe.
template <typename Index>
class KeptIndexes {
 public:
  // directory: the user's choice; empty: none. notes: what a user wants to know of what is kept. beside: the shard.
  explicit KeptIndexes(cache::FrameKind kind, std::string directory, std::shared_ptr<cache::Notes> notes = nullptr,
                       bool beside = true)
      : notes_(std::move(notes)), tables_({kind, cache::kIndexSuffix, beside}, std::move(directory), notes_) {}

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
  // Whichever version of the shard it says that it is of. Only where forget() could remove it: one that turns out to be
  // of another shard by now would have to be met again by each who opens it.
  std::optional<Index> load_unchecked(const storage::Storage& storage, const std::string& shard) const {
    std::optional<Index> index;
    tables_.read(storage, shard, kMostIndex, [&](cache::KeptTables::Bytes bytes) {
      if (!cache::may_remove(bytes.place)) return false;
      const std::size_t size = bytes.file.size();
      index = Index::parse(std::move(bytes.buffer), size, {});
      return index.has_value();
    });
    return index;
  }
  // The same, where nobody has to be asked for the shard: reads of its storage are held to a version, and what is known
  // of the object there does not contradict the index. nullopt: there is none.
  std::optional<Index> at_hand(const storage::Storage& storage, const std::string& shard) const {
    if (!storage.holds_versions()) return {};
    auto index = load_unchecked(storage, shard);
    if (index && !storage.check_known(shard, index->version())) return {};
    return index;
  }
  void forget(const storage::Storage& storage, const std::string& shard) const { tables_.forget(storage, shard); }
  // Fails only where the user chose the folder: an index that cannot be kept is built again the next time.
  Result<void> save(const storage::Storage& storage, const std::string& shard, const Index& index) const {
    return tables_.save(storage, shard, index.file_bytes());
  }
  cache::Notes* notes() const { return notes_.get(); }

 private:
  // Of one whose shard's size is not known yet; what is in the file is compared with its checksum.
  static constexpr std::uint64_t kMostIndex = std::uint64_t{64} << 30;
  static constexpr std::uint64_t kSmallest = 4096;  // of a shard with nothing in it

  const std::shared_ptr<cache::Notes> notes_;
  const cache::KeptTables tables_;
};

}  // namespace feedline::format
