// SPDX-License-Identifier: Apache-2.0
#include "storage/local_file.h"

#include <fcntl.h>

#include <cerrno>
#include <string_view>
#include <utility>

namespace feedline::storage {

namespace {

// Returns a hint that explains why the operating system does not find a path in a form that users expect to work.
std::string_view unknown_to_the_system(std::string_view name) {
  if (name.find("://") != name.npos) return " (a URL: this accepts only local files)";
  if (name.starts_with('~')) return " (~ is not expanded)";
  return "";
}

}  // namespace

std::unexpected<Error> file_error(std::string what, const std::string& name, int system_errno) {
  if (system_errno == ENOENT) {
    auto error = storage_error("", system_errno);
    error.error().what.append(": ").append(name).append(unknown_to_the_system(name));
    error.error().where.shard = name;
    return error;
  }
  auto error = storage_error(std::move(what), system_errno);
  error.error().where.shard = name;
  return error;
}

Result<struct ::stat> stat_regular_file(int fd, const std::string& path) {
  struct ::stat status;
  if (::fstat(fd, &status) != 0) return file_error("cannot look up", path, errno);
  if (S_ISDIR(status.st_mode)) return file_error("cannot read a folder as a file", path, EISDIR);
  if (!S_ISREG(status.st_mode)) return file_error("cannot read a pipe, socket or device", path, ESPIPE);
  return status;
}

Result<OpenFile> open_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait forever; regular files ignore it
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return file_error("cannot open", path, errno);
  OpenFile file{FileDescriptor(fd), {}};
  FEEDLINE_TRY(file.status, stat_regular_file(fd, path));
  return file;
}

ObjectStat to_object_stat(const struct ::stat& status) {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  return {static_cast<std::uint64_t>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * kNanosecondsPerSecond + status.st_mtim.tv_nsec};
}

Result<std::span<const std::byte>> read_file(const SystemReads& reads, int fd, FileRead read) {
  while (const auto step = read.next()) {
    const ssize_t got = reads.pread(fd, step->room.data(), step->room.size(), static_cast<off_t>(step->offset));
    read.got(got < 0 ? -errno : got);
  }
  return read.result();
}

}  // namespace feedline::storage
