// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wraps another storage backend: copies whole objects into a cache on this machine, and reads them from there.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/node/node_cache.h"
#include "cache/node/whole_object.h"
#include "storage/storage.h"

namespace feedline::cache {

// Thread-safe. An object is fetched on the first read, not when opened. Objects that cannot be cached are read from the
// wrapped backend. Each call to open() queries that backend for the current version, unless the caller specifies a
// version.
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
  // Like open(), or open_version() if a version is given, but reads only a part that identifies the content: from the
  // copy if there is one, otherwise from the original storage, even for large reads.
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

  // ---- for prefetching
  NodeCache& cache() const { return *cache_; }
  // The memory for objects that are fetched whole. Objects that a caller reads whole into its own buffer do not use it.
  PieceMemory& piece_memory() const { return *memory_; }
  // Finds the object's copy, or fetches the whole object. Returns nullopt if there is no room or another process is
  // fetching the object. Errors: those from reading the object, and kCancelled after stop.stop().
  Result<std::optional<HeldCopy>> bring(const std::string& path, const storage::Version& version, Stop& stop) const;
  // Makes the object's readers release its copy after each read; the copy stays until its space is needed.
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

// Returns a storage backend that reads through the cache that OpenOptions describes, or `storage` itself if no folder
// is set.
Result<std::shared_ptr<const storage::Storage>> through_cache(std::shared_ptr<const storage::Storage> storage,
                                                              const std::string& folder, CacheLimit limit);

}  // namespace feedline::cache
