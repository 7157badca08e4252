// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapts a user's storage library (feedline/foreign_storage.h) to the Storage interface.

#include <memory>
#include <string>
#include <vector>

#include "feedline/foreign_storage.h"
#include "storage/storage.h"

namespace feedline::storage {

// Returns the library for the scheme, the same one for every call; nullptr if there is none.
Result<std::shared_ptr<const Storage>> foreign_storage(const std::string& scheme);
// Sets the library for a scheme, instead of the one that set_foreign_storages() would find.
void add_foreign_storage(const std::string& scheme, std::shared_ptr<const ForeignStorage> foreign);
// Returns whether the scheme has been used or added.
bool has_foreign_storage(const std::string& scheme);

// Thread-safe. Object names are the URLs that without_secrets() returns. The version is checked only when a reader is
// opened, because the library cannot request a version. Later changes are detected only if the length differs, or by
// Reader::stat().
class AdaptedStorage final : public Storage {
 public:
  explicit AdaptedStorage(std::shared_ptr<const ForeignStorage> foreign) : foreign_(std::move(foreign)) {}

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  // Requests one byte more than expected, and does not check the version.
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  bool has_flat_names() const override { return true; }
  Result<Tree> list_below(const std::string& directory, Depth depth) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  Result<bool> is_directory(const std::string& path) const override;
  std::string note() const override { return foreign_->explain(); }
  bool is_remote() const override { return true; }

 private:
  const std::shared_ptr<const ForeignStorage> foreign_;
};

}  // namespace feedline::storage
