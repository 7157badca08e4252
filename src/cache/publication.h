// SPDX-License-Identifier: Apache-2.0
#pragma once

// Creates a large cache file exactly once among concurrent processes:
//
// 1. An existing, valid file is used without a lock. 2. The maker holds the kernel's lock on PATH.lock. Others wait,
// and see who holds it. A lock ends with its
//     holder, even in a crash.
// 3. Under the lock the file is looked up again: another process may have made it. 4. Unfinished files of killed makers
// are removed. 5. PATH.PID.N.unfinished is written and flushed. 6. PATH.origin is removed, and the directory flushed:
// PATH is now invalid. 7. The unfinished file is renamed to PATH, and the directory flushed. 8. PATH.origin is
// published in the same way: it holds the inputs and the size of PATH.
//
// A process killed at any point leaves work to repeat, never an invalid file that looks valid. A full disk is an error,
// and the unfinished file is removed. On a file system without locks several processes may make PATH at once: each
// renames a complete file, and they are identical.

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
  FileLock::Waits waits = {};                      // called if another process is making it
  Notes* notes = nullptr;
};

enum class Published { kFound, kMade };

// The file exists once this returns. Errors: those of write(), and kStorage if the folder is not writable.
Result<Published> find_or_make(const Publication& publication, const SystemWrites& writes = system_writes());

}  // namespace feedline::cache
