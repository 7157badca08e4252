// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/opened_version.h"

#include <span>
#include <utility>

#include "base/random.h"
#include "cache/checksum.h"

namespace feedline::format {

OpenedVersion::OpenedVersion(std::shared_ptr<const storage::Storage> storage, std::string path,
                             storage::Version version)
    : storage_(std::move(storage)), path_(std::move(path)), version_(version) {}

Result<void> OpenedVersion::check() const {
  if (storage_->is_remote()) return {};
  FEEDLINE_TRY(const storage::Version now, storage_->stat(path_));
  return storage::check_version(path_, version_, now);
}

std::uint64_t OpenedVersion::key(std::string_view array) const {
  const std::string name = storage_->identity(path_) + '\n' + std::string(array);
  return cache::xxh3(std::as_bytes(std::span(name)), base::mix64(version_.bytes + base::mix64(version_.stamp())));
}

}  // namespace feedline::format
