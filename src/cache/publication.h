// SPDX-License-Identifier: Apache-2.0
#pragma once

// Creates a large cache file exactly once, even if several processes request it:
//
// 1. An existing, valid file is used without a lock.
// 2. The process that creates the file holds the kernel's lock on PATH.lock. Other processes wait, and can show which
//    process holds the lock. A lock ends with the process that holds it, even in a crash.
// 3. Under the lock, the process looks for the file again: another process may have created it.
// 4. The process removes unfinished files of killed processes.
// 5. The process writes and flushes PATH.PID.N.unfinished.
// 6. The process removes PATH.origin, and flushes the directory: PATH is now invalid.
// 7. The process renames the unfinished file to PATH, and flushes the directory.
// 8. The process publishes PATH.origin in the same way: this file records the inputs and the size of PATH.
//
// A process that is killed at any point leaves work to repeat, but never an invalid file that looks valid. A full disk
// is an error; the unfinished file is removed. On a file system without locks, several processes may create PATH at
// once: each renames a complete file, and the files are identical.

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
  FrameKind kind;                                  // the magic of PATH.origin
  std::vector<std::uint64_t> origin;               // the inputs: the file is rebuilt if a number differs
  std::function<Result<void>(OutputFile&)> write;  // writes the file; called by the lock's holder
  OutputFile::Reserve reserve = {};                // called while the file grows
  FileLock::Waits waits = {};                      // called if another process is making it
  Notes* notes = nullptr;
};

enum class Published { kFound, kMade };

// The file exists when this call returns successfully. Errors: those from write(), and kStorage if the folder is not
// writable.
Result<Published> find_or_make(const Publication& publication, const SystemWrites& writes = system_writes());

}  // namespace feedline::cache
