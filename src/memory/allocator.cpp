// SPDX-License-Identifier: Apache-2.0
#include "memory/allocator.h"

#include <utility>

namespace feedline::memory {

Result<std::shared_ptr<Lease>> Lease::take(std::shared_ptr<Allocator> allocator, std::size_t bytes) {
  FEEDLINE_TRY(std::byte * data, allocator->allocate(bytes));
  return std::shared_ptr<Lease>(new Lease(std::move(allocator), data, bytes));
}

Lease::Lease(std::shared_ptr<Allocator> allocator, std::byte* data, std::size_t bytes)
    : allocator_(std::move(allocator)), data_(data), bytes_(bytes) {}

Lease::~Lease() { allocator_->release(data_, bytes_); }

}  // namespace feedline::memory
