// SPDX-License-Identifier: Apache-2.0
#pragma once

// The copies in a cache folder, by file name:
//
//   FOLDER/objects/AB/NAME.object    the bytes of an object, and nothing else
//   FOLDER/objects/AB/NAME.entry     its origin and its checksum (entry.h)
//   FOLDER/objects/AB/NAME.partial   a copy in progress, at its final size; locked by its maker
//
// AB are the first digits of NAME. A process that reads a copy holds a shared lock on NAME.object. A file is removed
// only under an exclusive lock. Files with other names are neither counted nor removed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/file_lock.h"
#include "cache/node/entry.h"
#include "cache/node/ledger.h"
#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

inline constexpr std::string_view kObject = ".object", kEntry = ".entry", kPartial = ".partial";

// Without the suffix.
std::string copy_path(const std::string& folder, const std::string& name);

struct Copy {
  std::string path;  // without the suffix
  std::uint64_t bytes = 0;
  std::int64_t used_ns = 0;  // time of the last open
};

struct Copies {
  std::vector<Copy> whole;
  std::uint64_t disk_bytes = 0;
};

// Lists the copies and removes leftovers of killed processes. Call this function under the ledger's lock, except with
// kLook, which removes nothing. Returns kStorage if the folder cannot be listed.
enum class Leftovers { kRemove, kLook };
Result<Copies> scan(const std::string& folder, Leftovers leftovers, const NodeCalls& calls);

// Reads a copy's entry; returns nullopt if it is missing or invalid.
std::optional<Entry> entry_of(const std::string& path);
// Returns the XXH3 checksum of a whole file.
Result<std::uint64_t> checksum_of(const storage::FileDescriptor& fd, const std::string& name);

// Locks the existing file of this name. The result is invalid if there is no file, or another process holds a
// conflicting lock. how: as for flock(2).
LockedFile lock_named(const std::string& path, int how);
// Removes the copy unless a process is reading it. Requires: the ledger is locked.
bool remove_unused(const std::string& path, const NodeCalls& calls);
// For a cache without copies: removes its locked ledger, and its folders if they contain no other files.
void remove_folders(const std::string& folder);

}  // namespace feedline::cache
