// SPDX-License-Identifier: Apache-2.0
#pragma once

// How much a cache takes of its disk, and the lock under which that changes: the file "feedline-cache" in its folder,
// which also says that the folder is a cache.
//
// The number is never below the truth: it grows before anything is written, and shrinks after it was removed. Whoever
// is killed in between leaves it too high, until the next one that finds no room counts what is there (scan()).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cache/file_lock.h"
#include "cache/output_file.h"
#include "feedline/error.h"

namespace feedline::cache {

// How a cache writes: a seam for tests, as SystemWrites.
struct NodeCalls {
  SystemWrites files = system_writes();
  int (*allocate)(int fd, off_t offset, off_t bytes) = nullptr;  // as posix_fallocate(3)
};
const NodeCalls& node_calls();

enum class FolderAccess {
  kMake,    // a folder that is not there, or is empty, becomes a cache
  kExists,  // it has to be one
};

inline constexpr const char* kLedgerName = "feedline-cache";

// kConfig: the folder holds something else, or is another version's. kStorage: it cannot be made, or looked at.
Result<void> check_cache_folder(const std::string& folder, FolderAccess access, const NodeCalls& calls);

// Locked while it lives. For one thread.
class Ledger {
 public:
  // Waits for whoever has it, which nobody has for long. kStorage: the folder takes no files, or knows no locks.
  static Result<Ledger> lock(const std::string& folder, const NodeCalls& calls);

  std::optional<std::uint64_t> disk_bytes() const;  // nullopt: nobody has counted yet
  Result<void> write(std::uint64_t disk_bytes);

 private:
  Ledger(LockedFile file, std::string path, const NodeCalls& calls)
      : file_(std::move(file)), path_(std::move(path)), calls_(&calls) {}

  LockedFile file_;
  std::string path_;
  const NodeCalls* calls_;
};

}  // namespace feedline::cache
