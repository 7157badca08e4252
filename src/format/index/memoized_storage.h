// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches the results of a storage backend while the format of a source is detected, since most formats check for the
// same files.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Caches whether paths exist, and the contents of folders. Not thread-safe. Use this object only for a short time,
// because changes to the storage are not detected.
class MemoizedStorage final : public storage::Storage {
 public:
  // Requires: `storage` outlives this object.
  explicit MemoizedStorage(const storage::Storage& storage) : storage_(storage) {}

  Result<storage::ObjectStat> stat(const std::string& path) const override {
    return once(stats_, path, [&] { return storage_.stat(path); });
  }
  Result<bool> is_directory(const std::string& path) const override {
    return once(are_directories_, path, [&] { return storage_.is_directory(path); });
  }
  Result<std::vector<storage::Entry>> list(const std::string& directory) const override {
    return once(lists_, directory, [&] { return storage_.list(directory); });
  }

  Result<std::vector<storage::Entry>> list_some(const std::string& directory, std::size_t most) const override {
    return storage_.list_some(directory, most);
  }

  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    return storage_.open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return storage_.read_all(path, buffer, most);
  }
  bool holds_versions() const override { return storage_.holds_versions(); }
  bool has_flat_names() const override { return storage_.has_flat_names(); }
  Result<storage::Tree> list_below(const std::string& directory, storage::Depth depth) const override {
    return storage_.list_below(directory, depth);
  }
  void name_below(const std::string& directory, std::string_view path, std::string& name) const override {
    storage_.name_below(directory, path, name);
  }
  std::string identity(const std::string& path) const override { return storage_.identity(path); }
  std::optional<std::string> local_path(const std::string& path) const override { return storage_.local_path(path); }
  bool is_remote() const override { return storage_.is_remote(); }

 private:
  template <typename Known, typename Ask>
  static typename Known::mapped_type once(Known& known, const std::string& path, const Ask& ask) {
    const auto found = known.find(path);
    return found != known.end() ? found->second : known.emplace(path, ask()).first->second;
  }

  const storage::Storage& storage_;
  mutable std::map<std::string, Result<storage::ObjectStat>> stats_;
  mutable std::map<std::string, Result<bool>> are_directories_;
  mutable std::map<std::string, Result<std::vector<storage::Entry>>> lists_;
};

}  // namespace feedline::format
