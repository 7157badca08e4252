// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/spilled_array.h"

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/test_conditions.h"
#include "cache/own_files.h"
#include "cache/places.h"
#include "storage/local_file.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kShare = 2;  // the file may use a half of the free disk space

std::size_t most_in_memory() {
  const std::uint64_t forced = base::test_conditions().block_cache_bytes;
  return forced > 0 ? static_cast<std::size_t>(forced) : SpilledBytes::kMostInMemory;
}

}  // namespace

Result<void> SpilledBytes::create_file() {
  FEEDLINE_TRY(folder_, cache::cache_folder());
  FEEDLINE_CHECK_OK(cache::make_folder(folder_));
  FEEDLINE_TRY(file_, cache::open_unnamed_file(folder_));
  struct ::statvfs disk;
  if (::fstatvfs(file_.get(), &disk) != 0) return storage::file_error("cannot look up", folder_, errno);
  most_ = std::uint64_t{disk.f_bavail} * disk.f_frsize / kShare;
  return {};
}

// Moves the bytes in memory to the file.
Result<void> SpilledBytes::write_out() {
  if (!file_.valid()) FEEDLINE_CHECK_OK(create_file());
  if (size() > most_) return storage_error("too little free space in '" + folder_ + "'", ENOSPC);
  FEEDLINE_CHECK_OK(cache::write_at(file_, folder_, file_bytes_, memory_));
  file_bytes_ += memory_.size();
  memory_.clear();
  return {};
}

// Reads the file back into memory.
void SpilledBytes::take_back() {
  stays_in_memory_ = true;
  std::vector<std::byte> all(static_cast<std::size_t>(size()));
  for (std::size_t at = 0; at < file_bytes_;) {
    const ssize_t got =
        ::pread(file_.get(), all.data() + at, static_cast<std::size_t>(file_bytes_) - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    FEEDLINE_CHECK(got > 0);  // a file without a name that this process has written
    at += static_cast<std::size_t>(got);
  }
  std::ranges::copy(memory_, all.begin() + static_cast<std::ptrdiff_t>(file_bytes_));
  memory_ = std::move(all);
  file_ = {};
  file_bytes_ = 0;
  mapped_.reset();
}

void SpilledBytes::append(std::span<const std::byte> bytes) {
  memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  if (!stays_in_memory_ && memory_.size() > most_in_memory() && !write_out()) take_back();
}

void SpilledBytes::seal() {
  if (file_bytes_ == 0) return;
  if (!memory_.empty() && !write_out()) return take_back();
  memory_ = {};
  const auto bytes = static_cast<std::size_t>(file_bytes_);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) return take_back();
  const auto unmap = [bytes](const std::byte* begin) { ::munmap(const_cast<std::byte*>(begin), bytes); };
  mapped_ = std::shared_ptr<const std::byte>(static_cast<const std::byte*>(mapped), unmap);
}

}  // namespace feedline::format
