// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "storage/file_descriptor.h"

namespace feedline::cache {

// flock(2) of an open file, through interruptions by signals. false: errno says why.
bool lock_open_file(const storage::FileDescriptor& fd, int how);

// An open file whose lock ends with it. A lock is the open file's, and a child after fork() has that open as well:
// closing it here would leave the lock to the child, for as long as it lives. A child's own destructor leaves the lock
// to the process that took it.
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
  bool is_own() const;  // and not a parent's

 private:
  void unlock();
  storage::FileDescriptor fd_;
  pid_t owner_ = 0;  // the process whose lock it is
};

// A lock on a file made for it, which says in it who holds it. Held by one process or thread at a time, waited for,
// released with the object or by the holder's death. Where the file system knows no locks, or the folder takes no
// files, it holds nothing: callers stay correct, only slower.
class FileLock {
 public:
  // waits: called once where somebody else holds it, with who: "process 123 on host".
  using Waits = std::function<void(const std::string& holder)>;
  static FileLock take(const std::string& lock_path, const Waits& waits = {});
  bool held() const { return file_.valid(); }

 private:
  explicit FileLock(storage::FileDescriptor fd) : file_(std::move(fd)) {}
  LockedFile file_;
};

}  // namespace feedline::cache
