// SPDX-License-Identifier: Apache-2.0
#pragma once

// A local file that appears whole or not at all: written under another name, then renamed.

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

// How files are written: a seam for tests of disks that are full, and of processes that end at any step.
struct SystemWrites {
  int (*open)(const char* path, int flags, mode_t mode);          // as open(2)
  ssize_t (*write)(int fd, const void* data, std::size_t bytes);  // as write(2)
  int (*flush)(int fd);                                           // as fdatasync(2); of a folder, its names
  int (*rename)(const char* from, const char* to);                // as rename(2)
  int (*remove)(const char* path);                                // as unlink(2)
};
const SystemWrites& system_writes();

// Does a commit() wait for the device? Without it a power cut may leave the name on a file that is cut or all zeros:
// right for files that carry their own checksum and can be made again.
enum class Flush : bool { kNo, kYes };

// Not for several threads at once. Without a commit() the destructor removes what was written.
class OutputFile {
 public:
  // Writes beside `path` under a name that no other process or thread uses.
  static Result<OutputFile> create(const std::string& path, const SystemWrites& writes = system_writes());
  OutputFile(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> append(std::span<const std::byte> bytes);
  // To the device. What follows it is not.
  Result<void> flush();
  // The file replaces what stood at `path`. Nothing may follow.
  Result<void> commit(Flush flush);

 private:
  OutputFile(storage::FileDescriptor fd, std::string path, std::string unfinished, const SystemWrites& writes);

  storage::FileDescriptor fd_;
  std::string path_;
  std::string unfinished_;  // empty once renamed
  const SystemWrites* writes_;
};

// create, append, commit.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes, Flush flush,
                        const SystemWrites& writes = system_writes());

// Removes what killed processes left unfinished of `path`. Requires: nobody is writing it.
void remove_unfinished(const std::string& path, const SystemWrites& writes = system_writes());
// Has the device keep the names in the folder of `path`. Some file systems cannot; then a power cut may take the name
// again, which costs the file and does no harm.
void flush_folder_of(const std::string& path, const SystemWrites& writes = system_writes());

}  // namespace feedline::cache
