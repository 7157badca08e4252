// SPDX-License-Identifier: Apache-2.0
#pragma once

// The storage for hf://datasets/. Object names have a commit: hf://datasets/ORG/NAME@COMMIT/path.

#include <memory>
#include <string>
#include <vector>

#include "storage/http/remote_storage.h"
#include "storage/hub/hub_catalog.h"

namespace feedline::storage {

// Thread-safe. Sizes and versions are those of the listing, so opening a file sends no request. A file in the local
// cache is read from there.
class HubStorage final : public RemoteStorage {
 public:
  explicit HubStorage(HubSettings settings, HttpLimits limits = http_limits(), Client* client = nullptr);

  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override;
  Result<std::unique_ptr<Reader>> open_version(const std::string& path, Access access,
                                               const Version& version) const override;
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override;
  Result<std::span<const std::byte>> read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                  std::uint64_t most, const Version& version) const override;
  Result<ObjectStat> stat(const std::string& path) const override;
  // The listing has every version, so an index is compared with its file when it is opened, which needs no request.
  bool holds_versions() const override { return false; }
  Result<void> check_known(const std::string& path, const Version& version) const override;
  Result<std::optional<ObjectSum>> known_sum(const std::string& path, const Version& version) const override;
  std::string_view who_knows_sums() const override { return "the Hub's listing"; }
  std::shared_ptr<const Storage> reading(const Reading& how) const override;
  bool has_flat_names() const override { return true; }
  Result<Tree> list_below(const std::string& directory, Depth depth) const override;
  Result<std::vector<Entry>> list(const std::string& directory) const override;
  Result<bool> is_directory(const std::string& path) const override;
  // Datasets with the same name at different endpoints have different identities.
  std::string identity(const std::string& path) const override;

  const HubCatalog& catalog() const { return *catalog_; }

 private:
  HubStorage(Remote remote, std::shared_ptr<const HubSite> site, std::shared_ptr<const HubCatalog> catalog);
  HubStorage(Remote remote, std::shared_ptr<const HubSite> site);

  const std::shared_ptr<const HubSite> site_;
  const std::shared_ptr<const HubCatalog> catalog_;
};

// Returns the storage for the current environment variables, the same one as long as they do not change.
std::shared_ptr<const HubStorage> hub_storage();
// Pins the name (HubCatalog::pin).
Result<std::string> pinned_hub_url(std::string_view url, bool is_new);

}  // namespace feedline::storage
