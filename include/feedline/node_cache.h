// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists, verifies and removes copies of stored objects in the cache folder that OpenOptions::cache_directory specifies.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// The disk space that a cache may use, shared by all processes that use it.
struct CacheLimit {
  std::uint64_t bytes = 0;  // 0: `share` applies
  double share = 0.5;       // fraction (0 to 1) of the disk's free space plus the cache's size, when it is opened
};

struct CachedObject {
  std::string copy;          // the entry's name in the cache: 32 digits
  std::string name;          // the whole name of the object; empty: its entry is damaged
  std::uint64_t bytes = 0;   // of the object
  std::int64_t used_ns = 0;  // time of the last open, to about a second; since 1970
  bool in_use = false;       // a process has it open
};

struct CacheContents {
  std::vector<CachedObject> objects;  // by name
  std::uint64_t disk_bytes = 0;       // bytes used by the folder, including downloads in progress
};

struct CacheRemoval {
  std::uint64_t objects = 0;     // removed copies
  std::uint64_t in_use = 0;      // copies retained because they are being read
  std::uint64_t disk_bytes = 0;  // bytes used by the folder now
};

// The functions fail with kConfig if the folder is not a cache or belongs to a different version of Feedline, and with
// kStorage if the folder cannot be read or written.
Result<CacheContents> list_cache(const std::string& directory);
// Verifies the copy against its checksum. Returns a description of the problem, including whether the copy was removed,
// or an empty string if the copy is valid or no longer exists.
Result<std::string> verify_copy(const std::string& directory, const std::string& copy);
// Removes temporary files of killed processes, and the least recently used copies until the folder uses at most
// `bytes`.
Result<CacheRemoval> prune_cache(const std::string& directory, std::uint64_t bytes);
// Removes all copies that are not being read and, if none is left, the cache's own files and empty folders.
Result<CacheRemoval> clear_cache(const std::string& directory);

}  // namespace feedline
