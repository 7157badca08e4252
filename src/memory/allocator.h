// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory for batches. `memory` declares the interface, `device` implements it (plain host memory, pinned memory),
// `pipeline` passes it in.

#include <cstddef>
#include <memory>

#include "feedline/error.h"

namespace feedline::memory {

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Returns at least `bytes` bytes, aligned to kAlignment, with unspecified contents. Thread-safe.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // Requires: (data, bytes) from allocate() of this object. Thread-safe.
  virtual void release(std::byte* data, std::size_t bytes) = 0;

  // Preallocates `count` blocks of `bytes`, if allocation is slow: locking pages stops the driver. Call before the
  // first batch. Returns an error if memory is insufficient. Thread-safe.
  virtual Result<void> prepare(std::size_t /*bytes*/, std::size_t /*count*/) { return {}; }

  // Declares [first, last) of the live block at `data` unwritten, so that the allocator may map spare pages there
  // instead of having the kernel clear new ones. The contents of the range become unspecified. Requires: no access to
  // the range during the call. Cheap if there is nothing to do. Thread-safe.
  virtual void reuse_pages(std::byte* /*data*/, std::size_t /*first*/, std::size_t /*last*/) {}
  // Identifies the pages that reuse_pages() could use: changes with every release() that adds some, 0 if there are
  // none, so that a caller tries each only once. Cheap. Thread-safe.
  virtual std::uint64_t spare_pages() const { return 0; }

  // A cache line, and the preferred alignment of AVX-512 and DLPack consumers.
  static constexpr std::size_t kAlignment = 64;
};

// One allocation, returned to its allocator when the last holder releases it. The holder may be the user, long after
// the pipeline is gone: the lease keeps the allocator alive.
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
