// SPDX-License-Identifier: Apache-2.0
#include "storage/mapped_reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace feedline::storage {
namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ: Linux 5.14, not in the headers of older C libraries

}  // namespace

Result<std::unique_ptr<Reader>> MappedReader::map(std::string name, OpenFile file) {
  const auto bytes = static_cast<std::size_t>(file.status.st_size);
  void* data = nullptr;
  if (bytes > 0) {
    data = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd.get(), 0);
    if (data == MAP_FAILED) return file_error("cannot map", name, errno);
    // MADV_RANDOM suits shuffled reads, for which readahead beyond the views would read unneeded data. This call is
    // advisory, and its failure has no consequences.
    ::madvise(data, bytes, MADV_RANDOM);
  }
  return std::unique_ptr<Reader>(new MappedReader(std::move(name), static_cast<std::byte*>(data), file.status));
}

MappedReader::MappedReader(std::string name, std::byte* data, const struct ::stat& status)
    : name_(std::move(name)),
      data_(data),
      bytes_(static_cast<std::size_t>(status.st_size)),
      device_(status.st_dev),
      inode_(status.st_ino) {}

MappedReader::~MappedReader() {
  if (data_) ::munmap(data_, bytes_);
}

Result<ObjectStat> MappedReader::stat() const {
  struct ::stat status;
  if (::stat(name_.c_str(), &status) != 0) return file_error("cannot look up", name_, errno);
  return to_object_stat(status);
}

Result<void> MappedReader::check_not_shrunk() const {
  struct ::stat status;
  // a file that was deleted or replaced still exists, unchanged, in the mapping
  if (::stat(name_.c_str(), &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) return {};
  if (static_cast<std::size_t>(status.st_size) < bytes_)
    return file_error("the file became shorter while it was in use: " + std::to_string(status.st_size) +
                          " bytes, previously " + std::to_string(bytes_),
                      name_, 0);
  return {};
}

// Makes one request for all pages instead of one per page fault. A failing disk or a file that is being truncated
// causes an error code here, where a page fault would raise a signal.
Result<void> MappedReader::bring_in(std::uint64_t offset, std::size_t bytes) const {
  static const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = offset / page_bytes * page_bytes;
  const std::size_t length = offset + bytes - begin;
  ::madvise(data_ + begin, length, MADV_WILLNEED);
  if (::madvise(data_ + begin, length, kPopulateRead) != 0 && (errno == EFAULT || errno == EHWPOISON))
    return file_error("cannot read mapped pages", name_, EIO);
  return {};
}

Result<std::size_t> MappedReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset >= bytes_ || out.empty()) return 0;
  const std::size_t bytes = std::min(out.size(), bytes_ - static_cast<std::size_t>(offset));
  FEEDLINE_CHECK_OK(check_not_shrunk());
  FEEDLINE_CHECK_OK(bring_in(offset, bytes));
  std::memcpy(out.data(), data_ + offset, bytes);
  return bytes;
}

Result<std::optional<std::span<const std::byte>>> MappedReader::view(std::uint64_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    return file_error("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                          " are outside the file of " + std::to_string(bytes_),
                      name_, 0);
  if (bytes == 0) return std::span<const std::byte>();
  FEEDLINE_CHECK_OK(check_not_shrunk());
  FEEDLINE_CHECK_OK(bring_in(offset, bytes));
  return std::span<const std::byte>(data_ + offset, bytes);
}

}  // namespace feedline::storage
