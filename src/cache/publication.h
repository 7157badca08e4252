// SPDX-License-Identifier: Apache-2.0
#pragma once

// The way in which a large file of a cache comes to be, whoever wants it and however many do:
//
//  1. What is there and vouched for is used, without a lock.
//  2. Who makes it holds the kernel's lock on PATH.lock. The others wait, and are told for whom. A lock goes with its
//     holder, however that ends.
//  3. Under the lock it is looked for again: another one may have made it meanwhile.
//  4. What killed makers left unfinished is removed.
//  5. PATH.PID.N.unfinished is written and flushed.
//  6. PATH.origin is removed, and the folder flushed: now nothing vouches for PATH.
//  7. The unfinished file is renamed to PATH, and the folder flushed.
//  8. PATH.origin is published in the same way: it says what PATH was made from, and how long it is.
//
// Whoever is killed, wherever, leaves work to do again, never a file that passes for another. A full disk is an error,
// and the unfinished file goes. Where a file system knows no locks several may make PATH at once: each renames a whole
// file, and they are the same.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cache/file_lock.h"
#include "cache/frame.h"
#include "cache/notes.h"
#include "cache/output_file.h"
#include "feedline/error.h"

namespace feedline::cache {

struct Publication {
  std::string path;
  FrameKind kind;                                  // of what PATH.origin is
  std::vector<std::uint64_t> origin;               // what the file is made from: another one where a number differs
  std::function<Result<void>(OutputFile&)> write;  // fills the file; by whoever holds the lock
  FileLock::Waits waits = {};                      // somebody else is making it
  Notes* notes = nullptr;
};

enum class Published { kFound, kMade };

// The file is there once this returns. Errors: those of write(), and kStorage where the folder takes no files.
Result<Published> find_or_make(const Publication& publication, const SystemWrites& writes = system_writes());

}  // namespace feedline::cache
