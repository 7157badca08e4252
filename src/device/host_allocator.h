// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "memory/allocator.h"

namespace feedline::device {

// Pageable host memory for batches, straight from the kernel in pages that are not there until they are written: a
// batch that is being filled takes only what its finished rows need. Large ones ask for huge pages, which makes the
// first write nearly free. Thread-safe.
class HostAllocator final : public memory::Allocator {
 public:
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;
};

}  // namespace feedline::device
