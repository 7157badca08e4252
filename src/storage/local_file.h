// SPDX-License-Identifier: Apache-2.0
#pragma once

// The system calls that local readers share, with errors that name the file.

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

// kStorage with where.shard = name. If the file does not exist, the message reports that and its name instead of
// `what`.
std::unexpected<Error> file_error(std::string what, const std::string& name, int system_errno);

// The status of the opened file; an error if it is not a regular file.
Result<struct ::stat> stat_regular_file(int fd, const std::string& path);
Result<OpenFile> open_regular_file(const std::string& path);
ObjectStat to_object_stat(const struct ::stat& status);
// Blocks the calling thread.
Result<std::span<const std::byte>> read_file(const SystemReads& reads, int fd, FileRead read);

}  // namespace feedline::storage
