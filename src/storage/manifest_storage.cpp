// SPDX-License-Identifier: Apache-2.0
#include "storage/manifest_storage.h"

namespace feedline::storage {

ManifestStorage::ManifestStorage(std::shared_ptr<const Storage> storage, const std::vector<ListedObject>& objects)
    : storage_(std::move(storage)) {
  for (const ListedObject& object : objects)
    listed_.insert_or_assign(storage_->identity(object.name), Listed{object.bytes, object.sum});
}

const ManifestStorage::Listed* ManifestStorage::find(const std::string& path) const {
  const auto found = listed_.find(storage_->identity(path));
  return found == listed_.end() ? nullptr : &found->second;
}

Result<void> ManifestStorage::check_length(const std::string& path, const Version& version) const {
  const Listed* const listed = find(path);
  if (listed == nullptr || listed->bytes == version.bytes) return {};
  auto error = storage_error("the object has " + std::to_string(version.bytes) +
                                 " bytes, but feedline-pack.json next to it lists " + std::to_string(listed->bytes) +
                                 ": the object is truncated, or from a different packing; copy it there again, or open "
                                 "with verify=None to read it unchecked",
                             0);
  error.error().where.shard = path;
  return error;
}

Result<std::unique_ptr<Reader>> ManifestStorage::open(const std::string& path, Access access) const {
  FEEDLINE_TRY(auto reader, storage_->open(path, access));
  FEEDLINE_TRY(const Version version, reader->version());
  FEEDLINE_CHECK_OK(check_length(path, version));
  return reader;
}

Result<std::unique_ptr<Reader>> ManifestStorage::open_version(const std::string& path, Access access,
                                                              const Version& version) const {
  FEEDLINE_CHECK_OK(check_length(path, version));
  return storage_->open_version(path, access, version);
}

Result<std::span<const std::byte>> ManifestStorage::read_all(const std::string& path, memory::ByteBuffer& buffer,
                                                             std::uint64_t most) const {
  if (find(path) == nullptr) return storage_->read_all(path, buffer, most);
  FEEDLINE_TRY(const Version version, storage_->stat(path));
  return read_version(path, buffer, most, version);
}

Result<std::span<const std::byte>> ManifestStorage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                                 std::uint64_t most, const Version& version) const {
  const Listed* const listed = find(path);
  FEEDLINE_CHECK_OK(check_length(path, version));
  FEEDLINE_TRY(auto bytes, storage_->read_version(path, buffer, most, version));
  if (listed == nullptr) return bytes;
  ObjectSum read = sum_of(listed->sum.kind, bytes);
  if (read != listed->sum) {  // it may have been damaged in transit
    FEEDLINE_TRY(bytes, storage_->read_version(path, buffer, most, version));
    read = sum_of(listed->sum.kind, bytes);
  }
  if (read != listed->sum) return sums_differ(path, listed->sum, read, who_knows_sums());
  ++compared_;
  return bytes;
}

Result<std::optional<ObjectSum>> ManifestStorage::known_sum(const std::string& path, const Version& /*version*/) const {
  const Listed* const listed = find(path);
  if (listed == nullptr) return std::nullopt;
  return listed->sum;
}

std::string ManifestStorage::summary() const {
  const std::string inner = storage_->summary();
  return inner + (inner.empty() ? "" : "; ") + "lengths are compared with feedline-pack.json, and " +
         std::to_string(compared_) + " objects that were read as a whole had its checksums";
}

}  // namespace feedline::storage
