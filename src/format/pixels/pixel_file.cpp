// SPDX-License-Identifier: Apache-2.0

// Access to PATH.filling is controlled by one lock (flock) on the file itself. The kernel releases the lock when the
// process exits. Closing the file releases the lock even if a forked child still has the file open.
//
// 1. A process that gets the exclusive lock is the only writer. The writer initializes a new file, counts the samples
//    in it (a killed process may have added one without counting it), and records the id of the running system.
// 2. Otherwise other processes are filling the file, and this process gets the shared lock. The recorded id must be
//    that of the running system, because a machine that shares only the file system does not see another machine's
//    writes to mapped pages.
// 3. All processes hold the shared lock while they fill the file. Index entries are set by compare-and-swap.
// 4. The process that adds the last sample flushes and renames the file. Other processes continue to use the open file.

#include "format/pixels/pixel_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "cache/file_lock.h"
#include "cache/own_files.h"
#include "format/pixels/pixel_record.h"
#include "storage/local_file.h"

namespace feedline::format {
namespace {

using storage::file_error;
using storage::FileDescriptor;

// The file cannot become larger than the address space reserved for its mapping. 16 TiB is an eighth of the address
// space.
constexpr std::uint64_t kMostMapped = std::uint64_t{1} << 44;
// Opening is tried several times, because another process may exit in the meantime, or finish and rename the file.
constexpr int kMostTries = 100;

std::string filling_name(const std::string& path) { return path + ".filling"; }

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Writes the head last, so that an incomplete file is initialized again.
Result<void> make_empty(const FileDescriptor& fd, const std::string& name, const PixelContents& contents) {
  const std::vector<std::byte> serialized = contents.serialized();
  const PixelHead head = make_head(contents, serialized);
  if (::ftruncate(fd.get(), 0) != 0) return file_error("cannot write", name, errno);
  // Allocates disk blocks, because the index is written through a mapping, and a full disk would then raise a signal.
  if (const int error = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(head.data_offset)))
    return file_error("cannot make room", name, error);
  FEEDLINE_CHECK_OK(cache::write_at(fd, name, kPageBytes, serialized));
  return cache::write_at(fd, name, 0, bytes_of(head));
}

Result<std::uint64_t> count_present(const FileDescriptor& fd, const std::string& name, const PixelHead& head) {
  std::vector<std::uint64_t> index(head.samples);
  const std::size_t bytes = index.size() * sizeof(std::uint64_t);
  if (::pread(fd.get(), index.data(), bytes, static_cast<off_t>(head.index_offset)) != static_cast<ssize_t>(bytes))
    return file_error("cannot read", name, errno);
  return static_cast<std::uint64_t>(std::ranges::count_if(index, [](std::uint64_t offset) { return offset != 0; }));
}

// Step 1. Requires: this process holds the exclusive lock.
Result<void> take_over(const FileDescriptor& fd, const std::string& name, const PixelContents& contents) {
  PixelHead head;
  const ssize_t bytes = ::pread(fd.get(), &head, sizeof head, 0);
  if (bytes != sizeof head || head.magic == 0) {
    FEEDLINE_CHECK_OK(make_empty(fd, name, contents));
    head = make_head(contents, contents.serialized());
  } else {
    struct ::stat status;
    if (::fstat(fd.get(), &status) != 0) return file_error("cannot look up", name, errno);
    FEEDLINE_CHECK_OK(check_head(head, static_cast<std::uint64_t>(status.st_size)));
    FEEDLINE_TRY(head.present, count_present(fd, name, head));
    // After a power failure, the head may be older than the records. Existing records must not be overwritten.
    const auto size = static_cast<std::uint64_t>(status.st_size);
    head.end = std::max(head.end, (size + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment);
    head.finished = 0;  // all samples were added, but the process ended before renaming the file
  }
  const std::string here = cache::running_system();
  std::memset(head.machine, 0, sizeof head.machine);
  std::memcpy(head.machine, here.data(), std::min(here.size(), sizeof head.machine - 1));
  return cache::write_at(fd, name, 0, bytes_of(head));
}

// Steps 1 and 2. Returns false if the file was renamed or deleted in the meantime.
Result<bool> join(const FileDescriptor& fd, const std::string& name, const PixelContents& contents) {
  if (cache::lock_open_file(fd, LOCK_EX | LOCK_NB)) {
    if (!cache::is_named(fd, name)) return false;
    FEEDLINE_CHECK_OK(take_over(fd, name, contents));
  } else if (errno != EWOULDBLOCK) {
    return file_error("cannot lock the file, which is required to write it; use a path on a local disk", name, errno);
  }
  if (!cache::lock_open_file(fd, LOCK_SH)) return file_error("cannot lock", name, errno);
  if (!cache::is_named(fd, name)) return false;
  PixelHead head;
  if (::pread(fd.get(), &head, sizeof head, 0) != sizeof head || head.magic != kPixelMagic) return false;
  if (head.machine != cache::running_system().substr(0, sizeof head.machine - 1))
    return file_error("another machine is filling this pixel file; use a different path on each machine", name, 0);
  return true;
}

bool has_limited_addresses() {
  struct ::rlimit limit;
  return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// Maps the size that the file may reach when processes with larger budgets fill it. If `ulimit -v` limits addresses,
// maps only this process's budget: records beyond it count as missing, and their samples are decoded.
Result<PixelStore::Extent> extent_of(const std::string& name, const FileDescriptor& fd, std::uint64_t budget) {
  FEEDLINE_TRY(const std::uint64_t room, cache::room_for(fd, name));
  const std::uint64_t most = std::min(room + kPageBytes, kMostMapped);
  const std::uint64_t capacity = budget == 0 ? most : std::min(budget, most);
  return PixelStore::Extent{has_limited_addresses() ? capacity : most, capacity};
}

Result<std::unique_ptr<PixelStore>> checked(Result<std::unique_ptr<PixelStore>> store, const PixelContents& contents) {
  if (!store) return store;
  const std::string difference = (*store)->contents().difference(contents);
  if (difference.empty()) return store;
  return config_error("cache: '" + (*store)->name() + "' contains different pixels: " + difference +
                      "; delete it, or use another path");
}

}  // namespace

Result<std::unique_ptr<PixelStore>> open_pixel_file(const std::string& path, const storage::Storage& storage) {
  const auto local = storage.local_path(path);
  if (!local)
    return config_error("pixel files are memory-mapped, which requires a local file; copy '" + path +
                        "' to this machine");
  FEEDLINE_TRY(storage::OpenFile file, storage::open_regular_file(*local));
  const auto bytes = static_cast<std::uint64_t>(file.status.st_size);
  return PixelStore::map(cache::LockedFile(std::move(file.fd)), path, PixelStore::Kind::kFinished, {bytes, bytes});
}

bool is_pixel_file(const storage::Storage& storage, const std::string& path) {
  const auto reader = storage.open(path, storage::Access::kRead);
  std::uint64_t magic = 0;
  if (!reader) return false;
  const auto got = (*reader)->read_at(0, std::as_writable_bytes(std::span(&magic, 1)));
  return got && *got == sizeof magic && magic == kPixelMagic;
}

Result<std::unique_ptr<PixelStore>> open_or_fill_pixel_file(const std::string& path, const PixelContents& contents,
                                                            std::uint64_t budget) {
  const std::string name = filling_name(path);
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (cache::is_there(path)) {
      if (!is_pixel_file(*storage::local_storage(), path))
        return config_error("cache: '" + path + "' exists but is not a pixel file; use another path");
      return checked(open_pixel_file(path), contents);
    }
    FEEDLINE_TRY(FileDescriptor fd, cache::open_own_file(name));
    cache::LockedFile file(std::move(fd));  // unlocks explicitly from here on, so a child forked in between does not
                                            // hold the lock
    FEEDLINE_TRY(const bool joined, join(file.file(), name, contents));
    if (!joined) continue;
    FEEDLINE_TRY(const auto extent, extent_of(name, file.file(), budget));
    FEEDLINE_TRY(auto store,
                 checked(PixelStore::map(std::move(file), name, PixelStore::Kind::kFilling, extent), contents));
    if (!store->is_complete()) return store;
    FEEDLINE_CHECK_OK(finish_pixel_file(*store, path));
  }
  return file_error("other processes repeatedly create and delete the pixel file", path, 0);
}

Result<void> finish_pixel_file(PixelStore& store, const std::string& path) {
  if (!store.is_complete()) return {};  // a damaged record was found in the meantime
  FEEDLINE_CHECK_OK(store.finish());
  return cache::give_name(filling_name(path), path);
}

}  // namespace feedline::format
