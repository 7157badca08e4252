// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompressed blocks that stay in memory as long as their table. Looking up a block takes no lock.

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork_mutex.h"

namespace feedline::format {

// Thread-safe.
class ResidentBlocks {
 public:
  explicit ResidentBlocks(std::size_t blocks) : blocks_(blocks) {}

  // Returns a block, or nullptr if keep() was not called for it.
  const void* of(std::size_t block) const { return blocks_[block].load(std::memory_order_acquire); }
  void keep(std::size_t block, std::shared_ptr<const void> content) {
    const std::lock_guard lock(mutex_);
    if (blocks_[block].load(std::memory_order_relaxed) != nullptr) return;
    const void* const kept = content.get();
    owners_.push_back(std::move(content));
    blocks_[block].store(kept, std::memory_order_release);
  }

 private:
  std::vector<std::atomic<const void*>> blocks_;
  ForkMutex mutex_;
  std::vector<std::shared_ptr<const void>> owners_;  // guarded by mutex_
};

}  // namespace feedline::format
