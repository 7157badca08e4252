// SPDX-License-Identifier: Apache-2.0
#include "storage/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "storage/local_file.h"

namespace feedline::storage {
namespace {

constexpr mode_t kFileMode = 0666;  // less the umask

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  std::string unfinished =
      path + "." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1)) + ".unfinished";
  // no O_EXCL: a leftover of a killed process that had our number is overwritten
  const int fd = ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0) return file_error("cannot create", unfinished, errno);
  return OutputFile(FileDescriptor(fd), path, std::move(unfinished));
}

OutputFile::OutputFile(FileDescriptor fd, std::string path, std::string unfinished)
    : fd_(std::move(fd)), path_(std::move(path)), unfinished_(std::move(unfinished)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      unfinished_(std::exchange(other.unfinished_, std::string())) {}

OutputFile::~OutputFile() {
  if (!unfinished_.empty()) ::unlink(unfinished_.c_str());
}

Result<void> OutputFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("cannot write", unfinished_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> OutputFile::commit(Flush flush) {
  if (flush == Flush::kYes && ::fdatasync(fd_.get()) != 0) return file_error("cannot flush", unfinished_, errno);
  if (const int error = fd_.close_now()) return file_error("cannot close", unfinished_, error);
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) return file_error("cannot rename to", path_, errno);
  unfinished_.clear();
  return {};
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes, Flush flush) {
  FEEDLINE_TRY(OutputFile file, OutputFile::create(path));
  FEEDLINE_CHECK_OK(file.append(bytes));
  return file.commit(flush);
}

}  // namespace feedline::storage
