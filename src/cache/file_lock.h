// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "storage/file_descriptor.h"

namespace feedline::cache {

// Calls flock(2) on an open file, and retries after signals. Returns false and sets errno on failure.
bool lock_open_file(const storage::FileDescriptor& fd, int how);

// An open file whose lock is released when this object is destroyed. A lock belongs to the open file description, which
// a forked child shares. Closing the file is therefore not enough: the child would still hold the lock. In the child,
// the destructor does not release the lock, which belongs to the process that acquired it.
class LockedFile {
 public:
  LockedFile() = default;
  explicit LockedFile(storage::FileDescriptor fd);
  LockedFile(LockedFile&&) = default;
  LockedFile& operator=(LockedFile&& other) noexcept {
    unlock();
    fd_ = std::move(other.fd_);
    owner_ = other.owner_;
    return *this;
  }
  ~LockedFile() { unlock(); }

  const storage::FileDescriptor& file() const { return fd_; }
  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  bool is_own() const;  // and is not inherited from a parent

 private:
  void unlock();
  storage::FileDescriptor fd_;
  pid_t owner_ = 0;  // the process that holds the lock
};

// A lock on a lock file that contains its holder's name. One process or thread holds the lock at a time, and others
// wait. The lock is released when the object is destroyed or the holder dies. If the file system does not support
// locks, or the folder is not writable, nothing is locked: callers are then slower, but still correct.
class FileLock {
 public:
  // waits: called once if the lock is held, with the name of the holder: "process 123 on host".
  using Waits = std::function<void(const std::string& holder)>;
  static FileLock take(const std::string& lock_path, const Waits& waits = {});
  bool held() const { return file_.valid(); }

 private:
  explicit FileLock(storage::FileDescriptor fd) : file_(std::move(fd)) {}
  LockedFile file_;
};

}  // namespace feedline::cache
