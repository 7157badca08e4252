// SPDX-License-Identifier: Apache-2.0
#include "cache/publication.h"

#include <algorithm>

#include "cache/places.h"
#include "storage/storage.h"

namespace feedline::cache {
namespace {

constexpr std::size_t kMostOriginBytes = 4096;

std::string origin_name(const std::string& path) { return path + ".origin"; }

std::span<std::byte> origin_of(const Publication& publication, std::uint64_t bytes, memory::ByteBuffer& buffer) {
  FrameBuilder builder(publication.kind, {bytes});
  builder.add(publication.origin);
  return builder.write(buffer);
}

// Returns whether the file exists and its certificate matches.
bool is_current(const Publication& publication) {
  const auto local = storage::local_storage();
  memory::ByteBuffer found_buffer, wanted_buffer;
  const auto found = local->read_all(origin_name(publication.path), found_buffer, kMostOriginBytes);
  if (!found) return false;
  if (is_foreign(*found, publication.kind)) {
    if (publication.notes != nullptr)
      publication.notes->add("copies in '" + folder_of(publication.path) +
                             "' were written by another version of Feedline and are rebuilt");
    return false;
  }
  const auto stat = local->stat(publication.path);
  return stat && std::ranges::equal(*found, origin_of(publication, stat->bytes, wanted_buffer));
}

Result<void> make(const Publication& publication, const SystemWrites& writes) {
  const std::string origin = origin_name(publication.path);
  FEEDLINE_TRY(OutputFile output, OutputFile::create(publication.path, writes));
  output.reserve_by(publication.reserve);
  FEEDLINE_CHECK_OK(publication.write(output));
  FEEDLINE_CHECK_OK(output.flush());
  writes.remove(origin.c_str());
  flush_folder_of(publication.path, writes);
  FEEDLINE_CHECK_OK(output.commit(Flush::kYes));
  FEEDLINE_TRY(const auto stat, storage::local_storage()->stat(publication.path));
  memory::ByteBuffer buffer;
  return write_file(origin, origin_of(publication, stat.bytes, buffer), Flush::kYes, writes);
}

}  // namespace

Result<Published> find_or_make(const Publication& publication, const SystemWrites& writes) {
  if (is_current(publication)) return Published::kFound;
  const auto lock = FileLock::take(publication.path + ".lock", publication.waits);
  if (is_current(publication)) return Published::kFound;
  if (lock.held()) remove_unfinished(publication.path, writes);  // and those of its origin, whose name begins with it
  FEEDLINE_CHECK_OK(make(publication, writes));
  return Published::kMade;
}

}  // namespace feedline::cache
