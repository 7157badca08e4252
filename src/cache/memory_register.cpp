// SPDX-License-Identifier: Apache-2.0
#include "cache/memory_register.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "cache/file_lock.h"
#include "cache/own_files.h"
#include "storage/local_file.h"

namespace feedline::cache {
namespace {

using storage::file_error;
using storage::FileDescriptor;

// The last process that uses a register may remove it after we open it and before we lock it.
constexpr int kMostTries = 100;

}  // namespace

std::optional<MemoryRegister> MemoryRegister::lock(const std::string& path) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    LockedFile file(FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)));
    if (!file.valid() || !lock_open_file(file.file(), LOCK_EX)) return {};
    if (is_named(file.file(), path)) return MemoryRegister(std::move(file));
  }
  return {};
}

std::vector<std::string> MemoryRegister::lines() const {
  std::string text(1 << 16, '\0');
  const ssize_t bytes = ::pread(file_.file().get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool MemoryRegister::write(const std::vector<std::string>& lines) const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return ::ftruncate(file_.file().get(), 0) == 0 &&
         ::pwrite(file_.file().get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

void MemoryRegister::remove(const std::string& path) { ::unlink(path.c_str()); }

std::string private_folder() {
  std::error_code error;
  for (const std::string& parent : {std::string("/dev/shm"), std::filesystem::temp_directory_path(error).string()}) {
    const std::string folder = parent + "/feedline-" + std::to_string(::geteuid());
    struct ::stat status;
    ::mkdir(folder.c_str(), 0700);
    if (::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
        (status.st_mode & 077) == 0)
      return folder;
  }
  return {};
}

std::string process_namespace() {
  struct ::stat status = {};
  ::stat("/proc/self/ns/pid", &status);
  return std::to_string(status.st_ino);
}

Result<FileDescriptor> make_memory(const std::string& label, std::uint64_t bytes) {
  FileDescriptor fd(::memfd_create(label.c_str(), MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return file_error("cannot make shared memory", label, errno);
  return fd;
}

std::string line_of(const FileDescriptor& memory) {
  struct ::stat status = {};
  ::fstat(memory.get(), &status);
  return std::to_string(::getpid()) + " " + std::to_string(memory.get()) + " " + std::to_string(status.st_ino);
}

FileDescriptor memory_of(const std::string& line) {
  std::istringstream stream(line);
  long pid = 0;
  int descriptor = 0;
  unsigned long long inode = 0;
  if (!(stream >> pid >> descriptor >> inode)) return {};
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  // checked before it is opened: the descriptor may now be a pipe or a device
  struct ::stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 0) return {};
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || status.st_ino != inode) return {};
  return fd;
}

}  // namespace feedline::cache
