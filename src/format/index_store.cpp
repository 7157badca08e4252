// SPDX-License-Identifier: Apache-2.0
#include "format/index_store.h"

#include <filesystem>
#include <utility>

#include "format/checksum.h"
#include "storage/local_folders.h"
#include "storage/output_file.h"
#include "storage/storage.h"

namespace feedline::format {

constexpr std::string_view kSuffix = ".feedline-index";
// What an index has for no member at all. For one it has at most 60 bytes and its name, which is less than the tar
// file has with the member's header: no index of a shard is larger than the shard and this.
constexpr std::uint64_t kSmallestIndex = 4096;

std::vector<std::string> IndexStore::places(const std::string& shard) const {
  // shards of several folders meet in one: the digest of the path keeps "train/0.tar" and "val/0.tar" apart
  const auto collected = [&shard](const std::string& folder) {
    return folder + "/" + std::filesystem::path(shard).filename().string() + "-" + path_digest(shard) +
           std::string(kSuffix);
  };
  if (!directory_.empty()) return {collected(directory_)};
  std::vector<std::string> list{shard + std::string(kSuffix)};
  if (const auto cache = storage::cache_folder()) list.push_back(collected(*cache + "/index"));
  return list;
}

std::optional<ShardIndex> IndexStore::load(const std::string& shard, const storage::ObjectStat& stat) const {
  for (const std::string& place : places(shard)) {
    memory::ByteBuffer buffer;
    const auto bytes = storage::local_storage()->read_all(place, buffer, stat.bytes + kSmallestIndex);
    if (!bytes) continue;
    if (auto index = ShardIndex::parse(std::move(buffer), bytes->size(), stat)) return index;
  }
  return {};
}

Result<void> IndexStore::save(const std::string& shard, const ShardIndex& index) const {
  Result<void> saved;
  for (const std::string& place : places(shard)) {
    if (place != shard + std::string(kSuffix))
      saved = storage::make_folder(std::filesystem::path(place).parent_path().string());
    if (saved) saved = storage::write_file(place, index.file_bytes(), storage::Flush::kNo);
    if (saved) return {};
  }
  return directory_.empty() ? Result<void>() : saved;
}

}  // namespace feedline::format
