// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "storage/file_descriptor.h"

namespace feedline::cache {

// flock(2) of an open file, through interruptions by signals. false: errno says why.
bool lock_open_file(const storage::FileDescriptor& fd, int how);

// An open file whose lock ends with it. A lock is the open file's, and a child after fork() has that open as well:
// closing it here would leave the lock to the child, for as long as it lives.
class LockedFile {
 public:
  LockedFile() = default;
  explicit LockedFile(storage::FileDescriptor fd) : fd_(std::move(fd)) {}
  LockedFile(LockedFile&&) = default;
  LockedFile& operator=(LockedFile&& other) noexcept {
    unlock();
    fd_ = std::move(other.fd_);
    return *this;
  }
  ~LockedFile() { unlock(); }

  const storage::FileDescriptor& file() const { return fd_; }
  bool valid() const { return fd_.valid(); }
  storage::FileDescriptor release() { return std::move(fd_); }  // with its lock

 private:
  void unlock();
  storage::FileDescriptor fd_;
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
