// SPDX-License-Identifier: Apache-2.0
#include "storage/routed_storage.h"

#include <utility>

#include "storage/registry.h"

namespace feedline::storage {

// Calls storage::open(), which the member of the same name hides in the class.
namespace {
Result<Location> locate(const std::string& path) { return open(path); }
}  // namespace

Result<std::unique_ptr<Reader>> RoutedStorage::open(const std::string& path, Access access) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->open(at.object, access);
}

Result<std::unique_ptr<Reader>> RoutedStorage::open_version(const std::string& path, Access access,
                                                            const Version& version) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->open_version(at.object, access, version);
}

Result<std::span<const std::byte>> RoutedStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                           std::uint64_t most) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->read_all(at.object, buffer, most);
}

Result<std::span<const std::byte>> RoutedStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                               std::uint64_t most, const Version& version) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->read_version(at.object, buffer, most, version);
}

Result<std::vector<Entry>> RoutedStorage::list(const std::string& directory) const {
  FEEDLINE_TRY(const Location at, locate(directory));
  return at.storage->list(at.object);
}

Result<ObjectStat> RoutedStorage::stat(const std::string& path) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->stat(at.object);
}

Result<bool> RoutedStorage::is_directory(const std::string& path) const {
  FEEDLINE_TRY(const Location at, locate(path));
  return at.storage->is_directory(at.object);
}

std::string RoutedStorage::identity(const std::string& path) const { return identity_of(path); }

std::optional<std::string> RoutedStorage::local_path(const std::string& path) const {
  const auto at = locate(path);
  return at ? at->storage->local_path(at->object) : std::nullopt;
}

}  // namespace feedline::storage
