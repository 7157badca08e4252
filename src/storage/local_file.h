// SPDX-License-Identifier: Apache-2.0
#pragma once

// The system calls that local readers share; their errors contain the file's name.

#include <sys/stat.h>

#include <cstddef>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/file_descriptor.h"
#include "storage/file_read.h"
#include "storage/local_storage.h"
#include "storage/reader.h"

namespace feedline::storage {

struct OpenFile {
  FileDescriptor fd;
  struct ::stat status;
};

// Returns kStorage with where.shard = name. If the file does not exist, the message reports this and the file's name
// instead of `what`.
std::unexpected<Error> file_error(std::string what, const std::string& name, int system_errno);

// Returns the status of the open file, or an error if it is not a regular file.
Result<struct ::stat> stat_regular_file(int fd, const std::string& path);
Result<OpenFile> open_regular_file(const std::string& path);
ObjectStat to_object_stat(const struct ::stat& status);
// Blocks the calling thread.
Result<std::span<const std::byte>> read_file(const SystemReads& reads, int fd, FileRead read);

}  // namespace feedline::storage
