// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies of stored objects that a machine keeps in a folder: OpenOptions::cache_directory fills and uses it. Here is
// what a person does with one.

#include <cstdint>
#include <string>
#include <vector>

#include "feedline/error.h"

namespace feedline {

// How much a cache may take of its disk: of all processes that use it together.
struct CacheLimit {
  std::uint64_t bytes = 0;  // 0: the share
  double share = 0.5;       // of what the disk has free, with what the cache holds, when it is opened; 0 to 1
};

struct CachedObject {
  std::string copy;          // what the cache calls it: 32 digits
  std::string name;          // the whole name of the object; empty: its entry is damaged
  std::uint64_t bytes = 0;   // of the object
  std::int64_t used_ns = 0;  // when it was opened last, to about a second; since 1970
  bool in_use = false;       // a process has it open
};

struct CacheContents {
  std::vector<CachedObject> objects;  // by name
  std::uint64_t disk_bytes = 0;       // that the folder takes, with what is being fetched
};

struct CacheRemoval {
  std::uint64_t objects = 0;     // removed
  std::uint64_t in_use = 0;      // that stay because they are being read
  std::uint64_t disk_bytes = 0;  // that the folder takes now
};

// Errors of all: kConfig: the folder is no cache, or another version's. kStorage: it cannot be read or written.
Result<CacheContents> list_cache(const std::string& directory);
// Reads the copy and compares it with its checksum. What is wrong with it, and whether it was removed; empty: nothing,
// or it is there no more.
Result<std::string> verify_copy(const std::string& directory, const std::string& copy);
// Removes what was not used for longest until the folder takes no more than `bytes`, and what killed processes left.
Result<CacheRemoval> prune_cache(const std::string& directory, std::uint64_t bytes);
// Removes all copies that nobody reads, and where none is left the cache's own files and empty folders.
Result<CacheRemoval> clear_cache(const std::string& directory);

}  // namespace feedline
