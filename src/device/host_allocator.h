// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>

#include "memory/allocator.h"

namespace feedline::device {

// Pageable host memory for batches, straight from the kernel, in huge pages where it has them. The block released last
// is kept and given out again: the kernel clears pages before it hands them out, which costs about as much as a quarter
// of the work that fills them. Thread-safe.
class HostAllocator final : public memory::Allocator {
 public:
  ~HostAllocator() override;
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;

 private:
  std::mutex mutex_;
  std::byte* kept_ = nullptr;  // one block, enough for a loop that drops each batch when it gets the next
  std::size_t kept_bytes_ = 0;
};

}  // namespace feedline::device
