// SPDX-License-Identifier: Apache-2.0
#pragma once

// Another storage whose objects are copied whole into a cache of this machine, and read there.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/node/node_cache.h"
#include "cache/node/whole_object.h"
#include "storage/storage.h"

namespace feedline::cache {

// Thread-safe. An object is fetched with the first bytes that are read of it, not when it is opened. One that cannot
// be kept is read from the other storage. Which version an object has is asked of the other storage each time, unless
// the caller says which one it wants.
class CachedStorage final : public storage::Storage {
 public:
  CachedStorage(std::shared_ptr<const storage::Storage> storage, std::shared_ptr<NodeCache> cache);
  ~CachedStorage() override;

  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override;
  Result<std::unique_ptr<storage::Reader>> open_version(const std::string& path, storage::Access access,
                                                        const storage::Version& version) const override;
  Result<std::unique_ptr<storage::Reader>> open_stored(const std::string& path,
                                                       const storage::Version& version) const override {
    return storage_->open_stored(path, version);
  }
  // open(), or open_version() where one is given, for a part that tells what the object holds: its copy where there is
  // one, and where it is stored else, whatever is read.
  Result<std::unique_ptr<storage::Reader>> open_part(const std::string& path,
                                                     const std::optional<storage::Version>& version) const;
  bool holds_versions() const override { return storage_->holds_versions(); }
  Result<void> check_known(const std::string& path, const storage::Version& version) const override {
    return storage_->check_known(path, version);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const storage::Version& version) const override;
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    return storage_->list(directory);
  }
  bool has_flat_names() const override { return storage_->has_flat_names(); }
  Result<storage::Tree> list_below(const std::string& directory, storage::Depth depth) const override {
    return storage_->list_below(directory, depth);
  }
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override {
    storage_->name_below(directory, path, name);
  }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return storage_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return storage_->is_directory(path); }
  std::string identity(const std::string& path) const override { return storage_->identity(path); }
  std::optional<std::string> local_path(const std::string& path) const override { return storage_->local_path(path); }
  std::string summary() const override;
  std::optional<storage::SecondRequests> second_requests() const override { return storage_->second_requests(); }
  bool is_remote() const override { return storage_->is_remote(); }

  // ---- for whoever knows what is read when
  NodeCache& cache() const { return *cache_; }
  // Of what is fetched whole; objects that a caller reads as a whole into a buffer of its own take none of it.
  PieceMemory& piece_memory() const { return *memory_; }
  // The copy, found or fetched whole. nullopt: there is no room, or another process is fetching it. Errors: the
  // object's, and kCancelled after stop.stop().
  Result<std::optional<Kept>> bring(const std::string& path, const storage::Version& version, Stop& stop) const;
  // Readers of the object hold its copy no longer than they read: it is there for as long as nobody needs its room.
  void let_go(const std::string& path) const;

 private:
  class OpenReaders;
  std::unique_ptr<storage::Reader> reader_of(const std::string& path, storage::Access access,
                                             const storage::Version& version,
                                             std::shared_ptr<const storage::Reader> stored,
                                             std::shared_ptr<const storage::Reader> copy) const;

  const std::shared_ptr<const storage::Storage> storage_;
  const std::shared_ptr<NodeCache> cache_;
  const std::shared_ptr<PieceMemory> memory_;
  const std::unique_ptr<OpenReaders> readers_;
};

// What reads through the cache of OpenOptions: `storage` itself where no folder is given.
Result<std::shared_ptr<const storage::Storage>> through_cache(std::shared_ptr<const storage::Storage> storage,
                                                              const std::string& folder, CacheLimit limit);

}  // namespace feedline::cache
