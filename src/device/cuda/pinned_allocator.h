// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locked host memory, which a GPU reads asynchronously. Blocks are reused, and unlocked only by the destructor,
// because locking is slow. Blocks smaller than kSlab bytes are parts of larger ones.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device/cuda/page_locking.h"
#include "memory/allocator.h"

namespace feedline::device::cuda {

// Supports blocks of one size or of many sizes; a released block is reused for the same size. Thread-safe.
class PinnedAllocator final : public memory::Allocator {
 public:
  // recall: called before another block is locked, to release unused blocks. room: called before each block; returns
  // the number of bytes that may still be locked, which is by default the free memory on the machine and in the control
  // group.
  PinnedAllocator(std::shared_ptr<const Context> context, std::function<void()> recall,
                  std::function<std::uint64_t()> room = &memory_left);
  ~PinnedAllocator() override;

  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;
  // Locks all blocks at once. kStorage with ENOMEM: out of memory; no memory stays locked.
  Result<void> prepare(std::size_t bytes, std::size_t count) override;

  std::uint64_t locked_bytes() const;  // lent and cached
  // Reports the memory's NUMA node, and why it was chosen.
  std::string explain_node() const { return locking_.explain_node(); }

  static constexpr std::size_t kSlab = std::size_t{1} << 20;

 private:
  static std::size_t block_bytes(std::size_t bytes);
  std::byte* take_spare(std::size_t size);  // nullptr if there is none
  Result<std::byte*> lock_pages(std::size_t size, std::size_t blocks, std::size_t of_them);
  Result<void> cut_slab(std::size_t size, std::size_t blocks);
  Result<void> lock_blocks(std::size_t size, std::size_t blocks);
  std::vector<std::byte*> take_surplus(std::size_t size);  // under the lock, like the next function
  void lend(std::size_t size);

  PageLocking locking_;
  const std::function<void()> recall_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> spare_;  // released blocks, by size
  std::vector<std::byte*> slabs_;
  std::uint64_t slab_bytes_ = 0;
  // of whole blocks, without parts
  std::uint64_t spare_bytes_ = 0;
  std::uint64_t lent_bytes_ = 0;
  std::uint64_t most_lent_bytes_ = 0;  // maximum at a time: cached memory beyond that is for sizes no longer used
};

}  // namespace feedline::device::cuda
