// SPDX-License-Identifier: Apache-2.0
#pragma once

// How host memory is page-locked, so that a GPU reads it by itself: blocks that the driver makes, and memory that
// somebody else owns. To lock pages stops the driver and takes as long as filling some batches.

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

// Bytes that machine and control group have left.
std::uint64_t memory_left();
// kStorage with ENOMEM: `bytes` are more than `room`; the message has both. what: such as "page-locked memory".
Result<void> check_room(std::string_view what, std::uint64_t bytes, std::uint64_t room);

// In one context, and for all of them. Thread-safe.
class PageLocking {
 public:
  // room: bytes that may still be locked, asked before each block.
  explicit PageLocking(std::shared_ptr<const Context> context, std::function<std::uint64_t()> room = &memory_left);

  const Context& context() const { return *context_; }
  // kStorage with ENOMEM: there is not so much.
  Result<void> check_room(std::string_view what, std::uint64_t bytes) const;

  // A block of the driver's, on the GPU's NUMA node where that can be had. Errors name `what`, and the numbers.
  Result<std::byte*> allocate(std::string_view what, std::size_t bytes);
  void free(std::byte* data);
  // Where blocks lie among the machine's NUMA nodes, and why, in words.
  std::string explain_node() const;

  // Whole pages of somebody else's, which stay where they are until they are unlocked.
  Result<void> lock(std::byte* data, std::size_t bytes) const;
  Result<void> unlock(std::byte* data) const;

 private:
  std::string numbers() const;

  const std::shared_ptr<const Context> context_;
  const std::function<std::uint64_t()> room_;
  std::atomic<base::OnMemoryNode::Outcome> placed_ = base::OnMemoryNode::Outcome::kNotAsked;  // the last time
};

}  // namespace feedline::device::cuda
