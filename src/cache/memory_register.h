// SPDX-License-Identifier: Apache-2.0
#pragma once

// How processes of one user find memory that others of them have: a register, a small text file with a line
// "pid descriptor inode" for each process that has it. The memory itself (memfd) has no name in any file system, and is
// opened by /proc/PID/fd/DESCRIPTOR, which the kernel allows to processes of the same user only. Lines of processes
// that are gone do no harm: the descriptor does not open, or the inode is another one.
//
// The register is read and written under its lock. Its name should tell the PID namespace, outside of which its numbers
// mean nothing: containers that see each other's files but not each other's processes have a copy each. The last
// process to leave removes it; after a crash it stays, and the next one writes it anew.

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
  // Locked until it goes. nullopt: it cannot be made or locked.
  static std::optional<MemoryRegister> lock(const std::string& path);

  std::vector<std::string> lines() const;
  bool write(const std::vector<std::string>& lines) const;
  static void remove(const std::string& path);

 private:
  explicit MemoryRegister(LockedFile file) : file_(std::move(file)) {}
  LockedFile file_;
};

// A folder that only this user can look into, for registers; empty: there is none, or somebody else made it first.
std::string private_folder();
// Of the PID namespace that this process is in, for names.
std::string process_namespace();
// Memory of `bytes`, whose pages come when they are written. label: what the system shows of it.
Result<storage::FileDescriptor> make_memory(const std::string& label, std::uint64_t bytes);
// What this process writes into a register of memory that it has open.
std::string line_of(const storage::FileDescriptor& memory);
// The memory that a line speaks of, where it is still there.
storage::FileDescriptor memory_of(const std::string& line);

}  // namespace feedline::cache
