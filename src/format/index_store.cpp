// SPDX-License-Identifier: Apache-2.0
#include "format/index_store.h"

#include <cstddef>
#include <cstdint>

#include "cache/places.h"

namespace feedline::format {
namespace {

// The size of the shard is not known yet; what is in the file is checked against its checksum.
constexpr std::uint64_t kMostIndex = std::uint64_t{64} << 30;

}  // namespace

std::optional<ShardIndex> IndexStore::load_unchecked(const storage::Storage& storage, const std::string& shard) const {
  std::optional<ShardIndex> index;
  tables().read(storage, shard, kMostIndex, [&](cache::KeptTables::Bytes bytes) {
    if (!cache::may_remove(bytes.place)) return false;
    const std::size_t size = bytes.file.size();
    index = ShardIndex::parse(std::move(bytes.buffer), size, {});
    return index.has_value();
  });
  return index;
}

}  // namespace feedline::format
