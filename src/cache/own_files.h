// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files that are written in place: by several processes that use file locks (named files of the pixel store), or by one
// process. publication.h is for files that are complete once they exist.

#include <cstdint>
#include <span>
#include <string>

#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

// Opens a file for reading and writing, and creates it if it does not exist.
Result<storage::FileDescriptor> open_own_file(const std::string& path);
// Creates a file without a name, which exists until it is closed.
Result<storage::FileDescriptor> open_unnamed_file(const std::string& folder);
bool is_there(const std::string& path);
// Returns whether `path` still refers to the open file, which may have been renamed, or removed and created again.
bool is_named(const storage::FileDescriptor& fd, const std::string& path);
// Returns the size that the file can currently reach on its disk. More space may become free later; a write to a full
// disk returns an error.
Result<std::uint64_t> room_for(const storage::FileDescriptor& fd, const std::string& name);
// Returns ENOSPC if the disk does not have enough space.
Result<void> write_at(const storage::FileDescriptor& fd, const std::string& name, std::uint64_t offset,
                      std::span<const std::byte> bytes);
// Renames the complete, flushed file to its final name, and flushes the directory. Succeeds if the unfinished file no
// longer exists, because another process has renamed it.
Result<void> give_name(const std::string& from, const std::string& to, const SystemWrites& writes = system_writes());

// Returns an identifier of this boot of the system: it changes at every boot, and differs between machines that share a
// file system.
std::string running_system();

// Returns the free bytes on the disk of a folder that may not exist yet, or 0 if the folder cannot be used.
std::uint64_t free_space_for(const std::string& folder);

}  // namespace feedline::cache
