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
  // At least `bytes` bytes, aligned to kAlignment, contents unspecified. Thread-safe.
  virtual Result<std::byte*> allocate(std::size_t bytes) = 0;
  // Requires: (data, bytes) from allocate() of this object. Thread-safe.
  virtual void release(std::byte* data, std::size_t bytes) = 0;

  // Makes allocate() quick for `count` blocks of `bytes` at a time, where memory is slow to come by: pinned memory,
  // which the driver stops everything for. Before the first batch. An error: there is not so much. Thread-safe.
  virtual Result<void> prepare(std::size_t /*bytes*/, std::size_t /*count*/) { return {}; }

  // Says that nobody has written [first, last) of the live block at `data` yet, so that an allocator that has pages to
  // spare may put them there instead of having the kernel clear new ones. Contents of that range become unspecified.
  // Requires: nobody touches the range during the call. Cheap where there is nothing to do. Thread-safe.
  virtual void reuse_pages(std::byte* /*data*/, std::size_t /*first*/, std::size_t /*last*/) {}
  // Which pages reuse_pages() could take: another number after every release() that leaves some, 0 where there are
  // none. So that a caller asks once for each. Cheap. Thread-safe.
  virtual std::uint64_t spare_pages() const { return 0; }

  // A cache line, and what AVX-512 and DLPack consumers like best.
  static constexpr std::size_t kAlignment = 64;
};

// One allocation, returned to its allocator when the last holder lets go. The holder may be the user, long after
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
