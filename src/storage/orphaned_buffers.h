// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace feedline::storage {

// Owns buffers that the kernel or a thread may still write to although their owner is done with them: cancelled reads,
// since a disk read cannot be stopped.
class OrphanedBuffers {
 public:
  virtual ~OrphanedBuffers() = default;
  virtual bool is_over() = 0;  // never blocks; one thread at a time
};

// Adds a buffer, and destroys all buffers that are complete by now. Thread-safe. Incomplete ones stay until the process
// exits, which does not wait for them; a child after fork() leaves its parent's alone.
void orphan(std::unique_ptr<OrphanedBuffers> buffers);
// The number of buffers left after destroying the complete ones.
std::size_t orphaned_buffers();

}  // namespace feedline::storage
