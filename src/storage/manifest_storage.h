// SPDX-License-Identifier: Apache-2.0
#pragma once

// Wraps another storage whose objects are listed in a manifest with their sizes and checksums.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/storage.h"

namespace feedline::storage {

struct ListedObject {
  std::string name;  // the storage's name for it
  std::uint64_t bytes = 0;
  ObjectSum sum;
};

// Thread-safe. Opening an object whose size differs from the manifest is an error. An object that is read as a whole is
// compared with its checksum, and read once more if they differ. Code that copies objects compares them with
// known_sum(). Objects that are not listed are not checked.
class ManifestStorage final : public Storage {
 public:
  ManifestStorage(std::shared_ptr<const Storage> storage, const std::vector<ListedObject>& objects);

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                               const Version& version) const override;
  Result<std::unique_ptr<Reader>> open_stored(const std::string& path, const Version& version) const override {
    return storage_->open_stored(path, version);
  }
  bool holds_versions() const override { return storage_->holds_versions(); }
  Result<void> check_known(const std::string& path, const Version& version) const override {
    return check_length(path, version);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<std::optional<ObjectSum>> known_sum(const std::string& path, const Version& version) const override;
  std::string_view who_knows_sums() const override { return "feedline-pack.json"; }
  std::string summary() const override;

  Result<std::vector<Entry>> list(const std::string& directory) const override { return storage_->list(directory); }
  bool has_flat_names() const override { return storage_->has_flat_names(); }
  Result<Tree> list_below(const std::string& directory, Depth depth) const override {
    return storage_->list_below(directory, depth);
  }
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override {
    storage_->name_below(directory, path, name);
  }
  std::string note() const override { return storage_->note(); }
  std::optional<SecondRequests> second_requests() const override { return storage_->second_requests(); }
  Result<ObjectStat> stat(const std::string& path) const override { return storage_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return storage_->is_directory(path); }
  std::string identity(const std::string& path) const override { return storage_->identity(path); }
  std::optional<std::string> local_path(const std::string& path) const override { return storage_->local_path(path); }
  bool is_remote() const override { return storage_->is_remote(); }
  bool joins_reads() const override { return storage_->joins_reads(); }
  std::unique_ptr<Transport> own_transport() const override { return storage_->own_transport(); }

 private:
  struct Listed {
    std::uint64_t bytes;
    ObjectSum sum;
  };
  const Listed* find(const std::string& path) const;
  Result<void> check_length(const std::string& path, const Version& version) const;

  const std::shared_ptr<const Storage> storage_;
  std::map<std::string, Listed, std::less<>> listed_;  // keyed by identity()
  mutable std::atomic<std::uint64_t> compared_{0};
};

}  // namespace feedline::storage
