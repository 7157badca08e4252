// SPDX-License-Identifier: Apache-2.0
#include "storage/backing_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

namespace feedline::storage {
namespace {

// Returns the entries of /proc/self/maps for a range of addresses.
struct MappedRange {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t offset = 0;  // offset in the file
  bool is_shared = false, is_writable = false;
  unsigned major = 0, minor = 0;
  std::uint64_t inode = 0;
  std::string path;

  bool is_same_file(const MappedRange& other) const {
    return major == other.major && minor == other.minor && inode == other.inode;
  }
};

std::optional<MappedRange> parse(const std::string& line) {
  MappedRange range;
  char access[5] = {};
  int path = 0;
  const int found = std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %n", &range.begin, &range.end, access,
                                &range.offset, &range.major, &range.minor, &range.inode, &path);
  if (found < 7) return {};
  range.is_writable = access[1] == 'w';
  range.is_shared = access[3] == 's';
  range.path = line.substr(static_cast<std::size_t>(path));
  return range;
}

// Returns the range that contains all of the memory; adjacent ranges of a file are merged.
std::optional<MappedRange> range_of(std::span<const std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()), end = begin + memory.size();
  std::ifstream maps("/proc/self/maps");
  std::optional<MappedRange> found;
  for (std::string line; std::getline(maps, line);) {
    auto range = parse(line);
    if (!range || range->end <= begin) continue;
    if (!found) {
      if (range->begin > begin) return {};
      found = std::move(range);
    } else {
      const bool follows = range->begin == found->end && range->is_same_file(*found) &&
                           range->is_shared == found->is_shared &&
                           range->offset == found->offset + (found->end - found->begin);
      if (!follows) return {};
      found->end = range->end;
      found->is_writable = found->is_writable || range->is_writable;
    }
    if (found->end >= end) return found;
  }
  return {};
}

// Returns whether the path refers to the file that is mapped in the range. In a layered file system, the device and
// inode numbers in /proc/self/maps may differ from those that stat() returns, so the file at the path is mapped, and
// its numbers in /proc/self/maps are compared.
bool is_file_of(int fd, const MappedRange& range) {
  void* const page = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return false;
  const auto mapped = range_of({static_cast<const std::byte*>(page), 1});
  ::munmap(page, 1);
  return mapped && mapped->is_same_file(range);
}

}  // namespace

std::shared_ptr<const BackingFile> BackingFile::of(std::span<const std::byte> memory) {
  if (memory.empty()) return nullptr;
  const auto range = range_of(memory);
  if (!range || !range->is_shared || range->inode == 0 || !range->path.starts_with('/')) return nullptr;
  const auto file = open_regular_file(range->path);
  if (!file || !is_file_of(file->fd.get(), *range)) return nullptr;
  const std::uint64_t offset = range->offset + (reinterpret_cast<std::uintptr_t>(memory.data()) - range->begin);
  std::shared_ptr<BackingFile> backing(new BackingFile(range->path, offset, memory, range->is_writable));
  backing->device_ = file->status.st_dev;
  backing->inode_ = file->status.st_ino;
  return backing;
}

BackingFile::BackingFile(std::string path, std::uint64_t offset, std::span<const std::byte> memory, bool is_writable)
    : path_(std::move(path)), offset_(offset), memory_(memory), is_writable_(is_writable) {}

Result<void> BackingFile::check_size(const struct ::stat& status) const {
  if (static_cast<std::uint64_t>(status.st_size) >= needed_bytes()) return {};
  return file_error("the file became shorter while it was in use: it has " + std::to_string(status.st_size) +
                        " bytes, but the array needs " + std::to_string(needed_bytes()),
                    path_, 0);
}

Result<void> BackingFile::check() const {
  struct ::stat status;
  // a file that was deleted or replaced still exists, unchanged, in the mapping
  if (::stat(path_.c_str(), &status) != 0 || !is_it(status)) return {};
  return check_size(status);
}

Result<std::optional<OpenFile>> BackingFile::open() const {
  auto file = open_regular_file(path_);
  if (!file || !is_it(file->status)) return std::nullopt;
  FEEDLINE_CHECK_OK(check_size(file->status));
  return std::move(*file);
}

Result<void> BackingFile::read(std::span<const std::byte> part, std::byte* out) const {
  FEEDLINE_TRY(const auto file, open());
  if (!file) {
    std::memcpy(out, part.data(), part.size());
    return {};
  }
  std::uint64_t offset = offset_of(part);
  for (std::size_t left = part.size(); left > 0;) {
    const ssize_t got = ::pread(file->fd.get(), out, left, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("cannot read", path_, errno);
    if (got == 0) return file_error("the file became shorter while it was read", path_, 0);
    out += got;
    offset += static_cast<std::uint64_t>(got);
    left -= static_cast<std::size_t>(got);
  }
  return {};
}

Result<std::shared_ptr<std::byte>> BackingFile::own_pages(std::span<const std::byte> part) const {
  static const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  FEEDLINE_TRY(const auto file, open());
  if (!file) return nullptr;
  const std::uint64_t before = offset_of(part) % page_bytes;
  const std::size_t bytes = before + part.size();
  // MAP_NORESERVE: pages that are never written need no memory
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file->fd.get(),
                             static_cast<off_t>(offset_of(part) - before));
  if (pages == MAP_FAILED) return nullptr;
  const std::shared_ptr<void> mapping(pages, [bytes](void* data) { ::munmap(data, bytes); });
  return std::shared_ptr<std::byte>(mapping, static_cast<std::byte*>(pages) + before);
}

}  // namespace feedline::storage
