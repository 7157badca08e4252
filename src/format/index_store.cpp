// SPDX-License-Identifier: Apache-2.0
#include "format/index_store.h"

#include <utility>

#include "cache/places.h"

namespace feedline::format {
namespace {

// What an index has for no member at all. For one it has at most 60 bytes and its name, which is less than the tar
// file has with the member's header: no index of a shard is larger than the shard and this.
constexpr std::uint64_t kSmallestIndex = 4096;

// For reading one whose shard's size is not known yet; what is in the file is checked against its checksum.
constexpr std::uint64_t kMostIndex = std::uint64_t{64} << 30;

constexpr cache::TableKind kIndexes{kShardIndex, ".feedline-index", true};

}  // namespace

IndexStore::IndexStore(std::string directory, std::shared_ptr<cache::Notes> notes)
    : notes_(std::move(notes)), tables_(kIndexes, std::move(directory), notes_) {}

std::optional<ShardIndex> IndexStore::load(const storage::Storage& storage, const std::string& shard,
                                           const storage::Version& version) const {
  std::optional<ShardIndex> index;
  tables_.read(storage, shard, version.bytes + kSmallestIndex, [&](cache::KeptTables::Bytes bytes) {
    const std::size_t size = bytes.file.size();
    index = ShardIndex::parse(std::move(bytes.buffer), size, version);
    return index.has_value();
  });
  return index;
}

std::optional<ShardIndex> IndexStore::load_unchecked(const storage::Storage& storage, const std::string& shard) const {
  std::optional<ShardIndex> index;
  tables_.read(storage, shard, kMostIndex, [&](cache::KeptTables::Bytes bytes) {
    if (!cache::may_remove(bytes.place)) return false;
    const std::size_t size = bytes.file.size();
    index = ShardIndex::parse(std::move(bytes.buffer), size, {});
    return index.has_value();
  });
  return index;
}

Result<void> IndexStore::save(const storage::Storage& storage, const std::string& shard,
                              const ShardIndex& index) const {
  return tables_.save(storage, shard, index.file_bytes());
}

}  // namespace feedline::format
