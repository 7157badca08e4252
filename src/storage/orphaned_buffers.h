// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace feedline::storage {

// Owns buffers to which the kernel or a thread may still write after their owner has finished, because a disk read that
// was cancelled cannot be stopped.
class OrphanedBuffers {
 public:
  virtual ~OrphanedBuffers() = default;
  virtual bool is_over() = 0;  // never blocks; one thread at a time
};

// Adds a buffer, and destroys all buffers whose reads have completed. Thread-safe. Other buffers stay until the process
// exits, which does not wait for them. After fork(), a child does not use its parent's buffers.
void orphan(std::unique_ptr<OrphanedBuffers> buffers);
// Returns the number of buffers that are left after destroying those whose reads have completed.
std::size_t orphaned_buffers();

}  // namespace feedline::storage
