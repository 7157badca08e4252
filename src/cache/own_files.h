// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files that several processes write in place, under the kernel's lock on the file itself: what the pixel store's file
// needs of the system by a name. Whole files come by publication.h.

#include <cstdint>
#include <span>
#include <string>

#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

// For reading and writing; made where it is not there.
Result<storage::FileDescriptor> open_own_file(const std::string& path);
bool is_there(const std::string& path);
// Is `path` a name of the open file? It may have been renamed, or removed and made again, since.
bool is_named(const storage::FileDescriptor& fd, const std::string& path);
// How many bytes the file may come to have on its disk: more may be free later, and a disk that is full says so itself.
Result<std::uint64_t> room_for(const storage::FileDescriptor& fd, const std::string& name);
// ENOSPC where the disk takes fewer bytes.
Result<void> write_at(const storage::FileDescriptor& fd, const std::string& name, std::uint64_t offset,
                      std::span<const std::byte> bytes);
// The file, whole and on the device by now, gets its name, and the folder keeps it. Fine where it is gone: another
// process was quicker.
Result<void> give_name(const std::string& from, const std::string& to, const SystemWrites& writes = system_writes());

// Of this running system: another one after every start. Two machines that share a file system have different ones.
std::string running_system();

}  // namespace feedline::cache
