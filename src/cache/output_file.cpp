// SPDX-License-Identifier: Apache-2.0
#include "cache/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "storage/local_file.h"

namespace feedline::cache {
namespace {

using storage::file_error;
using storage::FileDescriptor;

constexpr mode_t kFileMode = 0666;  // minus the umask
constexpr std::string_view kUnfinished = ".unfinished";

}  // namespace

const SystemWrites& system_writes() {
  static const SystemWrites writes{
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .write = ::write,
      .flush = ::fdatasync,
      .rename = std::rename,
      .remove = ::unlink};
  return writes;
}

Result<OutputFile> OutputFile::create(const std::string& path, const SystemWrites& writes) {
  static std::atomic<unsigned> counter{0};
  std::string unfinished =
      path + "." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1)) + std::string(kUnfinished);
  // no O_EXCL: a leftover of a killed process that had our number is overwritten
  const int fd = writes.open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0) return file_error("cannot create", unfinished, errno);
  return OutputFile(FileDescriptor(fd), path, std::move(unfinished), writes);
}

OutputFile::OutputFile(FileDescriptor fd, std::string path, std::string unfinished, const SystemWrites& writes)
    : fd_(std::move(fd)), path_(std::move(path)), unfinished_(std::move(unfinished)), writes_(&writes) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      unfinished_(std::exchange(other.unfinished_, std::string())),
      writes_(other.writes_),
      reserve_(std::move(other.reserve_)),
      written_(other.written_),
      reserved_(other.reserved_) {}

OutputFile::~OutputFile() {
  if (!unfinished_.empty()) writes_->remove(unfinished_.c_str());
}

Result<void> OutputFile::append(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  if (reserve_ && written_ > reserved_) {
    const std::uint64_t step = std::clamp(reserved_, kLeastReserved, kMostReserved);
    const std::uint64_t wanted = std::max(written_, reserved_ + step);
    FEEDLINE_CHECK_OK(reserve_(wanted - (written_ - bytes.size())));
    reserved_ = wanted;
  }
  while (!bytes.empty()) {
    const ssize_t written = writes_->write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("cannot write", unfinished_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> OutputFile::flush() {
  if (writes_->flush(fd_.get()) != 0) return file_error("cannot flush", unfinished_, errno);
  return {};
}

Result<void> OutputFile::commit(Flush flush) {
  if (flush == Flush::kYes) FEEDLINE_CHECK_OK(this->flush());
  if (const int error = fd_.close_now()) return file_error("cannot close", unfinished_, error);
  if (writes_->rename(unfinished_.c_str(), path_.c_str()) != 0) return file_error("cannot rename to", path_, errno);
  unfinished_.clear();
  if (flush == Flush::kYes) flush_folder_of(path_, *writes_);
  return {};
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes, Flush flush,
                        const SystemWrites& writes) {
  FEEDLINE_TRY(OutputFile file, OutputFile::create(path, writes));
  FEEDLINE_CHECK_OK(file.append(bytes));
  return file.commit(flush);
}

void remove_unfinished(const std::string& path, const SystemWrites& writes) {
  const std::filesystem::path whole(path);
  const std::string start = whole.filename().string() + ".";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(whole.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(kUnfinished)) writes.remove(entry.path().c_str());
  }
}

void flush_folder_of(const std::string& path, const SystemWrites& writes) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const FileDescriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) static_cast<void>(writes.flush(fd.get()));
}

}  // namespace feedline::cache
