// SPDX-License-Identifier: Apache-2.0
#pragma once

// Selects the storage of each path or URL by its scheme. This provides a single storage for lists that mix local files
// and URLs.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace feedline::storage {

// Object names are paths and URLs as users write them (registry.h). Thread-safe.
class RoutedStorage final : public Storage {
 public:
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                               const Version& version) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string identity(const std::string& path) const override;
  std::optional<std::string> local_path(const std::string& path) const override;
  bool is_remote() const override { return true; }  // some objects are
};

}  // namespace feedline::storage
