// SPDX-License-Identifier: Apache-2.0
#include "cache/own_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "storage/local_file.h"

namespace feedline::cache {

using storage::file_error;
using storage::FileDescriptor;

Result<FileDescriptor> open_own_file(const std::string& path) {
  constexpr mode_t kMode = 0666;  // minus the umask
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!fd.valid()) return file_error("cannot open", path, errno);
  return fd;
}

Result<FileDescriptor> open_unnamed_file(const std::string& folder) {
  constexpr mode_t kOwnerOnly = 0600;
  FileDescriptor fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnerOnly));
  if (fd.valid()) return fd;
  std::string path = folder + "/unnamed-XXXXXX";  // for file systems without O_TMPFILE
  fd = FileDescriptor(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.valid()) return file_error("cannot create a file in", folder, errno);
  ::unlink(path.c_str());
  return fd;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_named(const FileDescriptor& fd, const std::string& path) {
  struct ::stat open_file, named;
  return ::fstat(fd.get(), &open_file) == 0 && ::stat(path.c_str(), &named) == 0 && open_file.st_ino == named.st_ino &&
         open_file.st_dev == named.st_dev;
}

Result<std::uint64_t> room_for(const FileDescriptor& fd, const std::string& name) {
  struct ::stat status;
  struct ::statvfs disk;
  if (::fstat(fd.get(), &status) != 0 || ::fstatvfs(fd.get(), &disk) != 0)
    return file_error("cannot look up", name, errno);
  return static_cast<std::uint64_t>(status.st_size) + 2 * std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

Result<void> write_at(const FileDescriptor& fd, const std::string& name, std::uint64_t offset,
                      std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("cannot write", name, errno);
    if (written == 0) return file_error("cannot write", name, ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Result<void> give_name(const std::string& from, const std::string& to, const SystemWrites& writes) {
  if (writes.rename(from.c_str(), to.c_str()) != 0)
    return errno == ENOENT ? Result<void>() : file_error("cannot rename to", to, errno);
  flush_folder_of(to, writes);
  return {};
}

std::string running_system() {
  const FileDescriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  const ssize_t bytes = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : std::string();
}

std::uint64_t free_space_for(const std::string& folder) {
  std::filesystem::path existing = folder;
  std::error_code ignored;
  while (!std::filesystem::exists(existing, ignored) && existing != existing.parent_path())
    existing = existing.parent_path();
  struct ::statvfs disk;
  if (!std::filesystem::is_directory(existing, ignored) || ::access(existing.c_str(), W_OK) != 0 ||
      ::statvfs(existing.c_str(), &disk) != 0)
    return 0;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

}  // namespace feedline::cache
