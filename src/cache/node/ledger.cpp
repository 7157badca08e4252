// SPDX-License-Identifier: Apache-2.0
#include "cache/node/ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>

#include "cache/file_lock.h"
#include "cache/frame.h"
#include "cache/own_files.h"
#include "cache/places.h"
#include "storage/local_file.h"

namespace feedline::cache {
namespace {

using storage::file_error;
using storage::FileDescriptor;

constexpr FrameKind kKind{0x6568'6361'636c'6664, 1};
constexpr std::size_t kLedgerBytes = 4 * sizeof(std::uint64_t);  // magic, format, the number, checksum
constexpr mode_t kMode = 0666;                                   // minus the umask
using Content = std::array<std::byte, kLedgerBytes>;

std::string ledger_path(const std::string& folder) { return folder + "/" + kLedgerName; }

std::span<const std::byte> read_ledger(const FileDescriptor& fd, Content& content) {
  const ssize_t bytes = ::pread(fd.get(), content.data(), content.size(), 0);
  return std::span(content).first(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
}

// A folder with an empty ledger (its creator was killed) or a damaged one is still a cache.
Result<void> check_version_of(const std::string& folder) {
  const FileDescriptor fd(::open(ledger_path(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return file_error("cannot open", ledger_path(folder), errno);
  Content content;
  if (is_foreign(read_ledger(fd, content), kKind))
    return config_error("cache: '" + folder +
                        "' is a cache of another version of Feedline: choose another folder, or delete this one");
  return {};
}

}  // namespace

const NodeCalls& node_calls() {
  static const NodeCalls calls{.files = system_writes(), .allocate = ::posix_fallocate};
  return calls;
}

Result<void> check_cache_folder(const std::string& folder, FolderAccess access, const NodeCalls& calls) {
  if (is_there(ledger_path(folder))) return check_version_of(folder);
  if (access == FolderAccess::kExists) {
    if (!is_there(folder)) return file_error("cannot open the cache", folder, ENOENT);
    return config_error("cache: '" + folder + "' is not a Feedline cache: the folder has no file " + kLedgerName);
  }
  FEEDLINE_CHECK_OK(make_folder(folder));
  std::error_code error;
  const bool empty = std::filesystem::is_empty(folder, error);
  if (error) return file_error("cannot list the folder", folder, error.value());
  if (!empty && !is_there(ledger_path(folder)))  // another process may have just initialised it
    return config_error("cache: '" + folder +
                        "' contains other files: pass a separate folder for the cache, which need not exist yet, "
                        "such as " +
                        folder + "/feedline");
  const FileDescriptor fd(
      calls.files.open(ledger_path(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!fd.valid()) return file_error("cannot create", ledger_path(folder), errno);
  return {};
}

Result<Ledger> Ledger::lock(const std::string& folder, const NodeCalls& calls) {
  while (true) {
    LockedFile file(FileDescriptor(
        calls.files.open(ledger_path(folder).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode)));
    if (!file.valid()) return file_error("cannot open", ledger_path(folder), errno);
    if (!lock_open_file(file.file(), LOCK_EX)) return file_error("cannot lock", ledger_path(folder), errno);
    if (is_named(file.file(), ledger_path(folder))) return Ledger(std::move(file), ledger_path(folder), calls);
  }
}

std::optional<std::uint64_t> Ledger::disk_bytes() const {
  Content content;
  const auto file = read_ledger(file_.file(), content);
  if (!is_undamaged(file)) return {};
  const FrameReader reader(file, kKind, 1);
  if (!reader.is_whole()) return {};
  return reader.number(0);
}

Result<void> Ledger::write(std::uint64_t disk_bytes) {
  memory::ByteBuffer buffer;
  const auto file = FrameBuilder(kKind, {disk_bytes}).write(buffer);
  if (::lseek(file_.file().get(), 0, SEEK_SET) != 0) return file_error("cannot write", path_, errno);
  const ssize_t written = calls_->files.write(file_.file().get(), file.data(), file.size());
  if (written < 0) return file_error("cannot write", path_, errno);
  return {};  // truncation is detected by its checksum
}

}  // namespace feedline::cache
