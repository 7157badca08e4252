// SPDX-License-Identifier: Apache-2.0
#pragma once

// The system calls that local readers share, with errors that name the file.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "feedline/error.h"
#include "storage/file_descriptor.h"
#include "storage/local_storage.h"
#include "storage/reader.h"

namespace feedline::storage {

struct OpenFile {
  FileDescriptor fd;
  struct ::stat status;
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
