// SPDX-License-Identifier: Apache-2.0
#pragma once

// A local file that appears atomically: it is written under a temporary name and then renamed.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

// System calls for writing, replaceable in tests of full disks and of processes that are killed at any step.
struct SystemWrites {
  int (*open)(const char* path, int flags, mode_t mode);          // as open(2)
  ssize_t (*write)(int fd, const void* data, std::size_t bytes);  // as write(2)
  int (*flush)(int fd);                                           // as fdatasync(2); for a folder, its entries
  int (*rename)(const char* from, const char* to);                // as rename(2)
  int (*remove)(const char* path);                                // as unlink(2)
};
const SystemWrites& system_writes();

// Specifies whether commit() flushes the file to the device. Without flushing, a power failure may leave a truncated or
// zeroed file under the final name. This is acceptable for files that have a checksum and can be rebuilt.
enum class Flush : bool { kNo, kYes };

// Not thread-safe. If commit() is not called, the destructor removes the file.
class OutputFile {
 public:
  // Writes to the folder of `path` under a name that no other process or thread uses.
  static Result<OutputFile> create(const std::string& path, const SystemWrites& writes = system_writes());
  OutputFile(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> append(std::span<const std::byte> bytes);
  // `reserve` is called before the file grows, with the number of bytes by which it may grow: as many as were reserved
  // before, from kLeastReserved to kMostReserved, or more if the appended bytes need more. append() returns its errors.
  using Reserve = std::function<Result<void>(std::uint64_t bytes)>;
  static constexpr std::uint64_t kLeastReserved = std::uint64_t{1} << 20, kMostReserved = std::uint64_t{64} << 20;
  void reserve_by(Reserve reserve) { reserve_ = std::move(reserve); }
  // Flushes the data written so far to the device.
  Result<void> flush();
  // Replaces the file at `path`. No writes are allowed afterwards.
  Result<void> commit(Flush flush);

 private:
  OutputFile(storage::FileDescriptor fd, std::string path, std::string unfinished, const SystemWrites& writes);

  storage::FileDescriptor fd_;
  std::string path_;
  std::string unfinished_;  // empty once renamed
  const SystemWrites* writes_;
  Reserve reserve_;
  std::uint64_t written_ = 0, reserved_ = 0;
};

// create, append, commit.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes, Flush flush,
                        const SystemWrites& writes = system_writes());

// Removes unfinished files for `path` that killed processes have left. Requires: no process is writing `path`.
void remove_unfinished(const std::string& path, const SystemWrites& writes = system_writes());
// Flushes the directory of `path` to the device. Some file systems do not support this; a power failure may then lose
// the file.
void flush_folder_of(const std::string& path, const SystemWrites& writes = system_writes());

}  // namespace feedline::cache
