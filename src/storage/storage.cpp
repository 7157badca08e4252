// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

#include "base/check.h"

namespace feedline::storage {

Result<std::unique_ptr<Reader>> Storage::open_version(const std::string& path, Access access,
                                                      const Version& version) const {
  FEEDLINE_TRY(auto reader, open(path, access));
  FEEDLINE_TRY(const Version now, reader->version());
  FEEDLINE_CHECK_OK(check_version(path, version, now));
  return reader;
}

Result<Tree> Storage::list_below(const std::string& directory, Depth /*depth*/) const {
  return internal_error("the storage of '" + directory + "' can only list one folder at a time");
}

Result<std::span<const std::byte>> Storage::read_version(const std::string& path, memory::ByteBuffer& buffer,
                                                         std::uint64_t most, const Version& version) const {
  FEEDLINE_TRY(const auto reader, open_version(path, Access::kRead, version));
  const auto room = buffer.make_room(version.bytes, most);
  if (!room) {
    Error error = room.error();
    error.where.shard = path;
    return std::unexpected(std::move(error));
  }
  FEEDLINE_TRY(const std::size_t got, reader->read_at(0, *room));
  if (got < room->size())
    return std::unexpected(check_version(path, version, {got, version.mtime_ns, version.tag}).error());
  return *room;
}

}  // namespace feedline::storage
