// SPDX-License-Identifier: Apache-2.0
#pragma once

// The system calls that local readers share, with errors that name the file.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/file_descriptor.h"
#include "storage/local_storage.h"
#include "storage/reader.h"

namespace feedline::storage {

struct OpenFile {
  FileDescriptor fd;
  struct ::stat status;
};

// The room that a whole file is read into: one byte more than it says it has. A file that grew since shows itself by
// filling it, and is read again with more room (a buffer does not keep its contents when it grows). Pseudo files say 0
// and hold something.
class WholeFileRoom {
 public:
  // most: bytes that a file may have. What is over is refused by its word, or by the byte that is one too many.
  WholeFileRoom(std::uint64_t file_bytes, std::uint64_t most);
  Result<std::span<std::byte>> take(memory::ByteBuffer& buffer);
  void grow();  // after the room was filled

 private:
  std::uint64_t bytes_;  // that the file has, or that are tried next
  std::uint64_t most_;
  std::uint64_t room_ = 0;
};

// kStorage with where.shard = name. Where there is no such file, that and its name are said in the place of `what`.
std::unexpected<Error> file_error(std::string what, const std::string& name, int system_errno);

// The status of what was opened; an error where it is no regular file.
Result<struct ::stat> stat_regular_file(int fd, const std::string& path);
Result<OpenFile> open_regular_file(const std::string& path);
ObjectStat to_object_stat(const struct ::stat& status);
// Reads until `out` is full or the file ends, whatever the kernel's pieces and interruptions. Returns the bytes read.
Result<std::size_t> read_fully(const SystemReads& reads, int fd, const std::string& name, std::uint64_t offset,
                               std::span<std::byte> out);

}  // namespace feedline::storage
