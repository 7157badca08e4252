// SPDX-License-Identifier: Apache-2.0
#pragma once

// The copies in a cache's folder, by the names of their files:
//
//   FOLDER/objects/AB/NAME.object    the bytes of an object, and nothing else
//   FOLDER/objects/AB/NAME.entry     what it is a copy of, and its checksum (entry.h)
//   FOLDER/objects/AB/NAME.partial   a copy that is being made, as long as it will be; its maker has it locked
//
// AB are the first digits of NAME. A process that reads a copy holds a shared lock on NAME.object; nobody removes what
// he cannot lock for himself alone. A file of any other name is none of the cache's: it is neither counted nor removed.

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
  std::int64_t used_ns = 0;  // when it was opened last
};

struct Copies {
  std::vector<Copy> whole;
  std::uint64_t disk_bytes = 0;
};

// What is there. Removes what killed processes left: it is called under the lock of the ledger, but for kLook, which
// removes nothing. kStorage: the folder cannot be listed.
enum class Leftovers { kRemove, kLook };
Result<Copies> scan(const std::string& folder, Leftovers leftovers, const NodeCalls& calls);

// What is said of a copy; nullopt: nothing, or nothing that makes sense.
std::optional<Entry> entry_of(const std::string& path);
// XXH3 of a whole file.
Result<std::uint64_t> checksum_of(const storage::FileDescriptor& fd, const std::string& name);

// The lock of a file that is there under this name; not valid: there is none, or somebody else has a lock that this one
// cannot share. how: as flock(2).
LockedFile lock_named(const std::string& path, int how);
// Removes the copy, unless it is being read. Under the lock of the ledger.
bool remove_unused(const std::string& path, const NodeCalls& calls);
// Of a cache that has no copies: its ledger, which is locked, and its folders where nothing else is in them.
void remove_folders(const std::string& folder);

}  // namespace feedline::cache
