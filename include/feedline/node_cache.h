// SPDX-License-Identifier: Apache-2.0
#pragma once

// Management of a machine's cache of stored objects in a folder, which OpenOptions::cache_directory fills and uses.

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

// Errors of all functions: kConfig: the folder is not a cache, or belongs to a different version of Feedline. kStorage:
// the folder cannot be read or written.
Result<CacheContents> list_cache(const std::string& directory);
// Verifies the copy against its checksum. Returns the problem and whether the copy was removed, or an empty string if
// there is no problem or the copy no longer exists.
Result<std::string> verify_copy(const std::string& directory, const std::string& copy);
// Removes the least recently used copies until the folder uses at most `bytes`, and the leftovers of killed processes.
Result<CacheRemoval> prune_cache(const std::string& directory, std::uint64_t bytes);
// Removes all copies that are not being read and, if none is left, the cache's own files and empty folders.
Result<CacheRemoval> clear_cache(const std::string& directory);

}  // namespace feedline
