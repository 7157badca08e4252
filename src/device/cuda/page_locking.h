// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locks host memory so that a GPU can read it directly: blocks allocated by the driver, and memory that has other
// owners. Locking stalls the driver, and takes as long as filling several batches.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/memory_node.h"
#include "device/cuda/context.h"

namespace feedline::device::cuda {

// Returns how many bytes are free on the machine and in the control group.
std::uint64_t memory_left();
// Returns kStorage with ENOMEM if `bytes` exceeds `room`; the message reports both. what: for example "page-locked
// memory".
Result<void> check_room(std::string_view what, std::uint64_t bytes, std::uint64_t room);

// Locks memory through one context; the lock is valid in all contexts. Thread-safe.
class PageLocking {
 public:
  // room: called before each block; returns the number of bytes that may still be locked.
  explicit PageLocking(std::shared_ptr<const Context> context, std::function<std::uint64_t()> room = &memory_left);

  const Context& context() const { return *context_; }
  // kStorage with ENOMEM: out of memory.
  Result<void> check_room(std::string_view what, std::uint64_t bytes) const;

  // Allocates a block with the driver, on the GPU's NUMA node if possible. Error messages contain `what` and the sizes.
  Result<std::byte*> allocate(std::string_view what, std::size_t bytes);
  void free(std::byte* data);
  // Reports the blocks' NUMA node, and why it was chosen.
  std::string explain_node() const;

  // Locks whole pages that have other owners; the pages must not move until they are unlocked.
  Result<void> lock(std::byte* data, std::size_t bytes) const;
  Result<void> unlock(std::byte* data) const;

 private:
  std::string numbers() const;

  const std::shared_ptr<const Context> context_;
  const std::function<std::uint64_t()> room_;
  std::atomic<base::OnMemoryNode::Outcome> placed_ = base::OnMemoryNode::Outcome::kNotAsked;  // of the last block
};

}  // namespace feedline::device::cuda
