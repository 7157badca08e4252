// SPDX-License-Identifier: Apache-2.0
#pragma once

// Page-locked host memory, which a GPU reads by itself while everybody else goes on. Blocks go round and are unlocked
// at the end only, as to lock pages takes long. Blocks below kSlab bytes are parts of larger ones.

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

// Blocks of one size or of many; a released one is given out again for the same size. Thread-safe.
class PinnedAllocator final : public memory::Allocator {
 public:
  // recall: lets go of blocks that nobody needs any more, before another is locked.
  // room: bytes that may still be locked, asked before each block; by default what the machine and the control group
  // have left.
  PinnedAllocator(std::shared_ptr<const Context> context, std::function<void()> recall,
                  std::function<std::uint64_t()> room = &memory_left);
  ~PinnedAllocator() override;

  Result<std::byte*> allocate(std::size_t bytes) override;
  void release(std::byte* data, std::size_t bytes) override;
  // Locks them all at once. kStorage with ENOMEM: there is not so much; nothing stays locked.
  Result<void> prepare(std::size_t bytes, std::size_t count) override;

  std::uint64_t locked_bytes() const;  // lent and kept
  // Where it lies among the machine's NUMA nodes, and why, in words.
  std::string explain_node() const { return locking_.explain_node(); }

  static constexpr std::size_t kSlab = std::size_t{1} << 20;

 private:
  static std::size_t block_bytes(std::size_t bytes);
  std::byte* take_kept(std::size_t size);  // nullptr: there is none
  Result<std::byte*> lock_pages(std::size_t size, std::size_t blocks, std::size_t of_them);
  Result<void> cut_slab(std::size_t size, std::size_t blocks);
  Result<void> lock_blocks(std::size_t size, std::size_t blocks);
  std::vector<std::byte*> take_surplus(std::size_t size);  // under the lock, as the next one
  void lend(std::size_t size);

  PageLocking locking_;
  const std::function<void()> recall_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> kept_;  // released ones, by size
  std::vector<std::byte*> slabs_;
  std::uint64_t slab_bytes_ = 0;
  // of blocks that are no parts
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t lent_bytes_ = 0;
  std::uint64_t most_lent_bytes_ = 0;  // at a time: what is kept beyond that was for sizes that do not come any more
};

}  // namespace feedline::device::cuda
