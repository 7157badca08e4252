// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lets processes of one user share memory. The processes find the memory through a register: a small text file with a
// line "pid descriptor inode" for each process that has the memory open. The memory itself (memfd) has no name in any
// file system. The memory is opened through /proc/PID/fd/DESCRIPTOR, which the kernel permits only to processes of the
// same user. Lines of exited processes are harmless: the descriptor cannot be opened, or its inode differs.
//
// Processes lock the register while they read or write it. The register's name should contain the PID namespace,
// because PIDs are valid only in their namespace: containers that share files but not processes have separate
// registers. The last process that uses the register removes it; after a crash, the register remains, and the next
// process rewrites it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/file_lock.h"
#include "feedline/error.h"
#include "storage/file_descriptor.h"

namespace feedline::cache {

class MemoryRegister {
 public:
  // The register stays locked for the lifetime of the result. Returns nullopt if the register cannot be created or
  // locked.
  static std::optional<MemoryRegister> lock(const std::string& path);

  std::vector<std::string> lines() const;
  bool write(const std::vector<std::string>& lines) const;
  static void remove(const std::string& path);

 private:
  explicit MemoryRegister(LockedFile file) : file_(std::move(file)) {}
  LockedFile file_;
};

// Returns a folder for registers that only this user can access, or an empty string if the folder does not exist or
// another user owns it.
std::string private_folder();
// Returns an identifier of this process's PID namespace, for file names.
std::string process_namespace();
// Allocates `bytes` of memory; pages are allocated on first write. label: the name that the system shows for the
// memory.
Result<storage::FileDescriptor> make_memory(const std::string& label, std::uint64_t bytes);
// Returns the register's line for a memory object that this process has open.
std::string line_of(const storage::FileDescriptor& memory);
// Opens the memory object that a line of the register names, if it still exists.
storage::FileDescriptor memory_of(const std::string& line);

}  // namespace feedline::cache
