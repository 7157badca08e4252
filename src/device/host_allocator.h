// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/allocator.h"

namespace feedline::device {

// Pageable host memory for batches, straight from the kernel, in huge pages where it has them.
//
// The kernel clears pages before it hands them out, which costs about as much as a quarter of the work that fills them.
// So the block released last is kept and given out again. But in the usual loop a batch is released only after the next
// one was delivered, and by then the one after that has been begun in new memory: three blocks would go round.
// Therefore reuse_pages() moves the kept block's pages under the part of a new block that nobody has written yet.
// Small blocks are cheap to keep: as many as fit into 8 MiB stay, and no page is cleared twice.
// Thread-safe.
class HostAllocator final : public memory::Allocator {
 public:
  ~HostAllocator() override;
  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;
  void reuse_pages(std::byte* data, std::size_t first, std::size_t last) override;
  std::uint64_t spare_pages() const override { return spare_.load(std::memory_order_relaxed); }

 private:
  std::byte* take_small(std::size_t size);             // nullptr: there is none
  bool keep_small(std::byte* data, std::size_t size);  // false: enough are kept

  std::mutex mutex_;
  std::byte* kept_ = nullptr;  // one large block, enough for a loop that drops each batch when it gets the next
  std::size_t kept_bytes_ = 0;
  std::vector<std::byte*> small_;  // released ones, all of small_bytes_
  std::size_t small_bytes_ = 0;
  std::vector<std::pair<std::byte*, std::size_t>> unwritten_;  // live blocks of new pages, with their size
  std::uint64_t releases_ = 0;                                 // of large blocks
  std::atomic<std::uint64_t> spare_{0};                        // releases_ when kept_ was kept; 0: nothing is
};

}  // namespace feedline::device
