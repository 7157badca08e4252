// SPDX-License-Identifier: Apache-2.0
#pragma once

// The ledger records the disk space used by a cache, and its lock guards changes to the cache. The ledger is the file
// "feedline-cache" in the folder, and also marks the folder as a cache.
//
// The recorded size is never too low: it is increased before anything is written, and decreased after a removal. A
// process that is killed in between leaves the recorded size too high, until the next process that finds no room
// recounts the files (scan()).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cache/file_lock.h"
#include "cache/output_file.h"
#include "feedline/error.h"

namespace feedline::cache {

// The cache's system calls for writing, replaceable in tests like SystemWrites.
struct NodeCalls {
  SystemWrites files = system_writes();
  int (*allocate)(int fd, off_t offset, off_t bytes) = nullptr;  // as posix_fallocate(3)
};
const NodeCalls& node_calls();

enum class FolderAccess {
  kMake,    // a missing or empty folder becomes a cache
  kExists,  // it must be a cache
};

inline constexpr const char* kLedgerName = "feedline-cache";

// kConfig: the folder has other contents, or belongs to another version of the cache. kStorage: the folder cannot be
// created or accessed.
Result<void> check_cache_folder(const std::string& folder, FolderAccess access, const NodeCalls& calls);

// Holds the lock of the ledger while it exists. For one thread.
class Ledger {
 public:
  // Waits for the holder, which always releases it soon. kStorage: the folder is not writable, or does not support
  // locks.
  static Result<Ledger> lock(const std::string& folder, const NodeCalls& calls);

  std::optional<std::uint64_t> disk_bytes() const;  // nullopt: not counted yet
  Result<void> write(std::uint64_t disk_bytes);

 private:
  Ledger(LockedFile file, std::string path, const NodeCalls& calls)
      : file_(std::move(file)), path_(std::move(path)), calls_(&calls) {}

  LockedFile file_;
  std::string path_;
  const NodeCalls* calls_;
};

}  // namespace feedline::cache
