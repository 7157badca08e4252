// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for batches. `memory` declares this interface, `device` implements it (plain and page-locked host memory), and
// `pipeline` passes it on.

#include <cstddef>
#include <memory>

#include "feedline/error.h"

namespace feedline::memory {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns at least `bytes` bytes, aligned to kAlignment, with unspecified contents. Thread-safe.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // Requires: `data` is the result of allocate(bytes) of this object. Thread-safe.
  virtual void release(std::byte* data, std::size_t bytes) = 0;

  // Allocates `count` blocks of `bytes` bytes in advance if allocation is slow, for example because page-locking blocks
  // the driver. Call this function before the first batch. Returns an error if there is not enough memory. Thread-safe.
  virtual Result<void> prepare(std::size_t /*bytes*/, std::size_t /*count*/) { return {}; }

  // Declares the range [first, last) of the live block at `data` as unwritten, so that the allocator may map spare
  // pages into it instead of having the kernel clear new pages. The contents of the range become unspecified. Requires:
  // no access to the range during the call. Cheap if there is nothing to do. Thread-safe.
  virtual void reuse_pages(std::byte* /*data*/, std::size_t /*first*/, std::size_t /*last*/) {}
  // Identifies the pages that reuse_pages() can use, so that a caller tries each set of pages only once. The number
  // changes with every release() that adds pages, and is 0 if there are no pages. Cheap. Thread-safe.
  virtual std::uint64_t spare_pages() const { return 0; }

  // The size of a cache line, and the alignment that AVX-512 and DLPack consumers prefer.
  static constexpr std::size_t kAlignment = 64;
};

// One allocation, returned to its allocator when the last holder releases it. The last holder may be the user, long
// after the pipeline was destroyed, so the lease keeps the allocator alive.
class Lease {
 public:
  static Result<std::shared_ptr<Lease>> take(std::shared_ptr<Allocator> allocator, std::size_t bytes);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Lease(std::shared_ptr<Allocator> allocator, std::byte* data, std::size_t bytes);

  std::shared_ptr<Allocator> allocator_;
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace feedline::memory
