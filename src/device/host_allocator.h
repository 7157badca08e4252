// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/allocator.h"

namespace feedline::device {

// Pageable host memory for batches, allocated from the kernel, with huge pages if available.
//
// The kernel clears new pages, which takes about a quarter as long as filling them, so the last released block is
// cached and its pages are reused, for a block of any size. However, a typical loop releases a batch only after it
// receives the next one, and by then the loader has already started another batch in new memory: three blocks would be
// in use. Therefore, reuse_pages() moves the cached block's pages under the unwritten part of a new block. Small blocks
// can be cached cheaply: up to 8 MiB of them are cached, and their pages are cleared only once. Thread-safe.
class HostAllocator final : public memory::Allocator {
 public:
  ~HostAllocator() override;
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;
  void reuse_pages(std::byte* data, std::size_t first, std::size_t last) override;
  std::uint64_t spare_pages() const override { return spare_.load(std::memory_order_relaxed); }

 private:
  std::byte* take_small(std::size_t size);             // nullptr if there is none
  bool keep_small(std::byte* data, std::size_t size);  // false if enough are cached

  std::mutex mutex_;
  std::byte* cached_ = nullptr;  // one large block, enough for a loop that drops each batch when it gets the next
  std::size_t cached_bytes_ = 0;
  std::vector<std::byte*> small_;  // released blocks, all of small_bytes_
  std::size_t small_bytes_ = 0;
  std::vector<std::pair<std::byte*, std::size_t>> unwritten_;  // live blocks of new pages, with their size
  std::uint64_t releases_ = 0;                                 // of large blocks
  std::atomic<std::uint64_t> spare_{0};                        // releases_ when cached_ was set; 0 if there is none
};

}  // namespace feedline::device
