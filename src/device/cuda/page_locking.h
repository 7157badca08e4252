// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locks host memory so that a GPU can read it directly: blocks allocated by the driver, and memory owned by
// others. Locking stops the driver and takes as long as filling several batches.

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

// Returns the bytes left on the machine and in the control group.
std::uint64_t memory_left();
// kStorage with ENOMEM: `bytes` exceeds `room`; the message has both. what: for example "page-locked memory".
Result<void> check_room(std::string_view what, std::uint64_t bytes, std::uint64_t room);

// Locks in one context, for all of them. Thread-safe.
class PageLocking {
 public:
  // room: returns the bytes that may still be locked; called before each block.
  explicit PageLocking(std::shared_ptr<const Context> context, std::function<std::uint64_t()> room = &memory_left);

  const Context& context() const { return *context_; }
  // kStorage with ENOMEM: out of memory.
  Result<void> check_room(std::string_view what, std::uint64_t bytes) const;

  // Allocates a block with the driver, on the GPU's NUMA node if possible. Errors contain `what` and the numbers.
  Result<std::byte*> allocate(std::string_view what, std::size_t bytes);
  void free(std::byte* data);
  // Describes on which NUMA node blocks are, and why.
  std::string explain_node() const;

  // Locks whole pages owned by others, which must not move until they are unlocked.
  Result<void> lock(std::byte* data, std::size_t bytes) const;
  Result<void> unlock(std::byte* data) const;

 private:
  std::string numbers() const;

  const std::shared_ptr<const Context> context_;
  const std::function<std::uint64_t()> room_;
  std::atomic<base::OnMemoryNode::Outcome> placed_ = base::OnMemoryNode::Outcome::kNotAsked;  // of the last block
};

}  // namespace feedline::device::cuda
