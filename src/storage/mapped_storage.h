// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: local files that are always mapped, as an example of a backend with views.

#include <memory>

#include "storage/storage.h"

namespace feedline::storage {

class MappedStorage final : public Storage {
 public:
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access) const override {
    return local_->open(path, Access::kMap);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return local_->read_all(path, buffer, most);
  }
  Result<std::vector<Entry>> list(const std::string& directory) const override { return local_->list(directory); }
  Result<ObjectStat> stat(const std::string& path) const override { return local_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_->is_directory(path); }
  std::string identity(const std::string& path) const override { return local_->identity(path); }
  std::optional<std::string> local_path(const std::string& path) const override { return local_->local_path(path); }

 private:
  std::shared_ptr<const Storage> local_ = local_storage();
};

inline std::shared_ptr<const Storage> mapped_storage() { return std::make_shared<MappedStorage>(); }

}  // namespace feedline::storage
