// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "storage/file_descriptor.h"

namespace feedline::storage {

// A lock on a file made for it. Held by one process or thread at a time, waited for, released with the object or by
// the holder's death. Where the file system knows no locks it holds nothing: callers stay correct, only slower.
class FileLock {
 public:
  static FileLock take(const std::string& lock_path);
  bool held() const { return fd_.valid(); }  // false: the file system has no locks

 private:
  explicit FileLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace feedline::storage
