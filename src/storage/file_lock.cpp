// SPDX-License-Identifier: Apache-2.0
#include "storage/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

namespace feedline::storage {

FileLock FileLock::take(const std::string& lock_path) {
  constexpr mode_t kLockMode = 0666;  // less the umask
  FileDescriptor fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kLockMode));
  if (!fd.valid()) return FileLock(FileDescriptor());
  int taken = 0;
  do {
    taken = ::flock(fd.get(), LOCK_EX);
  } while (taken != 0 && errno == EINTR);
  return FileLock(taken == 0 ? std::move(fd) : FileDescriptor());
}

}  // namespace feedline::storage
