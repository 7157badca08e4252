// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support for the fault "short_reads": local files, read through a kernel with partial reads, occasional
// interruptions and no mapping. All tests that pass with local_storage() must also pass with this storage.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "storage/local_storage.h"

namespace feedline::storage {

inline std::shared_ptr<const Storage> short_reads_storage() {
  SystemReads reads;
  reads.pread = [](int fd, void* data, std::size_t bytes, off_t offset) -> ssize_t {
    static std::atomic<unsigned> calls{0};
    const unsigned call = calls.fetch_add(1, std::memory_order_relaxed);
    if (call % 5 == 4) {
      errno = EINTR;
      return -1;
    }
    // 1, 8, 15, ... bytes: odd pieces that no block size divides
    return ::pread(fd, data, std::min<std::size_t>(bytes, 1 + call % 40 * 7), offset);
  };
  reads.map = false;
  reads.ring = false;
  return std::make_shared<LocalStorage>(reads);
}

}  // namespace feedline::storage
