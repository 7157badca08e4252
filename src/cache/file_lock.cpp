// SPDX-License-Identifier: Apache-2.0
#include "cache/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace feedline::cache {
namespace {

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

std::string holder_of(const storage::FileDescriptor& fd) {
  std::array<char, 300> text{};
  const ssize_t bytes = ::pread(fd.get(), text.data(), text.size(), 0);
  return bytes > 0 ? std::string(text.data(), static_cast<std::size_t>(bytes)) : "another process";
}

// Writes the holder's name for users to read; the kernel itself tracks the holder.
void sign(const storage::FileDescriptor& fd) {
  const std::string holder = this_process();
  if (::ftruncate(fd.get(), 0) == 0) static_cast<void>(!::pwrite(fd.get(), holder.data(), holder.size(), 0));
}

}  // namespace

bool lock_open_file(const storage::FileDescriptor& fd, int how) {
  int taken = 0;
  do {
    taken = ::flock(fd.get(), how);
  } while (taken != 0 && errno == EINTR);
  return taken == 0;
}

LockedFile::LockedFile(storage::FileDescriptor fd) : fd_(std::move(fd)), owner_(::getpid()) {}

bool LockedFile::is_own() const { return owner_ == ::getpid(); }

void LockedFile::unlock() {
  if (fd_.valid() && is_own()) lock_open_file(fd_, LOCK_UN);
}

FileLock FileLock::take(const std::string& lock_path, const Waits& waits) {
  constexpr mode_t kLockMode = 0666;  // minus the umask
  storage::FileDescriptor fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  if (!fd.valid()) return FileLock(storage::FileDescriptor());
  bool taken = lock_open_file(fd, LOCK_EX | LOCK_NB);
  if (!taken && errno == EWOULDBLOCK) {
    if (waits) waits(holder_of(fd));
    taken = lock_open_file(fd, LOCK_EX);
  }
  if (!taken) return FileLock(storage::FileDescriptor());
  sign(fd);
  return FileLock(std::move(fd));
}

}  // namespace feedline::cache
