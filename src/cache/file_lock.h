// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "storage/file_descriptor.h"

namespace feedline::cache {

// flock(2) of an open file, through interruptions by signals. false: errno says why.
bool lock_open_file(const storage::FileDescriptor& fd, int how);

// A lock on a file made for it, which says in it who holds it. Held by one process or thread at a time, waited for,
// released with the object or by the holder's death. Where the file system knows no locks, or the folder takes no
// files, it holds nothing: callers stay correct, only slower.
class FileLock {
 public:
  // waits: called once where somebody else holds it, with who: "process 123 on host".
  using Waits = std::function<void(const std::string& holder)>;
  static FileLock take(const std::string& lock_path, const Waits& waits = {});
  bool held() const { return fd_.valid(); }

 private:
  explicit FileLock(storage::FileDescriptor fd) : fd_(std::move(fd)) {}
  storage::FileDescriptor fd_;
};

}  // namespace feedline::cache
