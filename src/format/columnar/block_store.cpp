// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/block_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "cache/own_files.h"
#include "cache/places.h"
#include "storage/local_file.h"

namespace feedline::format {
namespace {

// An extent fits about 60 Parquet pages of pyarrow's default size. Files of terabytes therefore stay below the kernel's
// limit of 65,530 mappings per process.
constexpr std::uint64_t kExtentBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kAlignment = 64;  // of a block: a cache line

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

Result<std::uint64_t> free_space(const storage::FileDescriptor& fd, const std::string& folder) {
  struct ::statvfs disk;
  if (::fstatvfs(fd.get(), &disk) != 0) return storage::file_error("cannot look up", folder, errno);
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

}  // namespace

BlockStore::~BlockStore() {
  for (const Extent& extent : extents_) ::munmap(extent.begin, extent.bytes);
}

// Requires: mutex_ is locked.
Result<void> BlockStore::create_file() {
  FEEDLINE_TRY(folder_, cache::cache_folder());
  FEEDLINE_CHECK_OK(cache::make_folder(folder_));
  FEEDLINE_TRY(storage::FileDescriptor fd, cache::open_unnamed_file(folder_));
  FEEDLINE_TRY(const std::uint64_t free, free_space(fd, folder_));
  least_free_ = static_cast<std::uint64_t>((1 - kShare) * static_cast<double>(free));
  files_.push_back(std::move(fd));
  file_bytes_ = 0;
  for (Extent& extent : extents_) extent.used = extent.bytes;  // they belong to the parent's file
  generation_ = fork_generation();
  return {};
}

// Requires: mutex_ is locked.
Result<BlockStore::Room> BlockStore::reserve(std::uint64_t bytes) {
  if (files_.empty() || generation_ != fork_generation()) FEEDLINE_CHECK_OK(create_file());
  const storage::FileDescriptor& file = files_.back();
  if (extents_.empty() || extents_.back().bytes - extents_.back().used < bytes) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t usual = most_ ? std::min(kExtentBytes, *most_ - *most_ % page) : kExtentBytes;
    Extent extent{.offset = file_bytes_, .bytes = std::max(usual, rounded_up(bytes, page))};
    if (most_ && (extent.bytes > *most_ || file_bytes_ > *most_ - extent.bytes))
      return storage_error("the limit of " + std::to_string(*most_ >> 20) + " MiB is reached", ENOSPC);
    // The free space is checked for each extent, because other processes, such as other ranks, also use the disk.
    FEEDLINE_TRY(const std::uint64_t free, free_space(file, folder_));
    if (free < least_free_ || free - least_free_ < extent.bytes)
      return storage_error("the disk of '" + folder_ + "' has " + std::to_string(free >> 20) +
                               " MiB of free space, half of the initial free space",
                           ENOSPC);
    // without it a full disk would end the process by SIGBUS
    if (const int error =
            ::posix_fallocate(file.get(), static_cast<off_t>(extent.offset), static_cast<off_t>(extent.bytes)))
      return storage::file_error("cannot enlarge a file in", folder_, error);
    void* const mapped =
        ::mmap(nullptr, extent.bytes, PROT_READ, MAP_SHARED, file.get(), static_cast<off_t>(extent.offset));
    if (mapped == MAP_FAILED) return storage::file_error("cannot map a file in", folder_, errno);
    extent.begin = static_cast<std::byte*>(mapped);
    file_bytes_ += extent.bytes;
    extents_.push_back(extent);
  }
  Extent& extent = extents_.back();
  const Room room{extent.begin + extent.used, extent.offset + extent.used, &file};
  extent.used = std::min(extent.bytes, extent.used + rounded_up(bytes, kAlignment));
  bytes_ += bytes;
  return room;
}

std::optional<std::span<const std::byte>> BlockStore::add(std::span<const std::span<const std::byte>> parts) {
  std::uint64_t bytes = 0;
  for (const auto part : parts) bytes += part.size();
  std::unique_lock lock(mutex_);
  if (!problem_.empty()) return std::nullopt;
  const auto fail = [this](const Error& error) {
    problem_ = error.message();
    return std::nullopt;
  };
  const auto room = reserve(bytes);
  if (!room) return fail(room.error());
  lock.unlock();  // the room belongs to this thread
  std::uint64_t offset = room->offset;
  for (const auto part : parts) {
    if (const auto written = cache::write_at(*room->file, folder_, offset, part); !written) {
      lock.lock();
      return fail(written.error());
    }
    offset += part.size();
  }
  return std::span<const std::byte>(room->begin, bytes);
}

std::uint64_t BlockStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t BlockStore::room() const {
  const std::lock_guard lock(mutex_);
  if (!problem_.empty()) return bytes_;
  const auto folder = cache::cache_folder();
  const std::uint64_t free = folder ? cache::free_space_for(*folder) : 0;
  const std::uint64_t share = bytes_ + static_cast<std::uint64_t>(kShare * static_cast<double>(free));
  if (free == 0) return bytes_;
  return most_ ? std::min(*most_, share) : share;
}

std::string BlockStore::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

}  // namespace feedline::format
