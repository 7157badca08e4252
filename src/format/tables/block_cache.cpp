// SPDX-License-Identifier: Apache-2.0
#include "format/tables/block_cache.h"

#include <algorithm>

namespace feedline::format {

std::shared_ptr<BlockCache::Slot> BlockCache::slot_of(const Key& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ages_.splice(ages_.begin(), ages_, found->second.age);
    return found->second.slot;
  }
  ages_.push_front(key);
  return entries_.emplace(key, Entry{std::make_shared<Slot>(), 0, ages_.begin()}).first->second.slot;
}

Result<std::shared_ptr<const void>> BlockCache::get(const Key& key, const Make& make) {
  asked_.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Slot> slot = slot_of(key);
  const std::lock_guard lock(slot->mutex);  // must not be called with mutex_ held
  if (slot->block.content) return slot->block.content;
  auto made = make();
  if (!made) {
    forget(key, slot);
    return std::unexpected(std::move(made).error());
  }
  made_.fetch_add(1, std::memory_order_relaxed);
  slot->block = std::move(*made);
  keep(key, slot, slot->block.bytes);
  return slot->block.content;
}

// Evicts the least recently used blocks; threads that hold one can continue to use it.
void BlockCache::keep(const Key& key, const std::shared_ptr<Slot>& slot, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto own = entries_.find(key);
  if (own == entries_.end() || own->second.slot != slot) return;  // removed while it was made
  if (bytes > most_) {                                            // caching it would evict all others, and then itself
    ages_.erase(own->second.age);
    entries_.erase(own);
    return;
  }
  own->second.bytes = bytes;
  bytes_ += bytes;
  while (bytes_ > most_ && !ages_.empty()) {
    const auto oldest = entries_.find(ages_.back());
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
    ages_.pop_back();
  }
}

void BlockCache::forget(const Key& key, const std::shared_ptr<Slot>& slot) {
  const std::lock_guard lock(mutex_);
  const auto own = entries_.find(key);
  if (own == entries_.end() || own->second.slot != slot) return;
  bytes_ -= own->second.bytes;
  ages_.erase(own->second.age);
  entries_.erase(own);
}

void BlockCache::drop(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.bytes == 0) return;
  bytes_ -= found->second.bytes;
  ages_.erase(found->second.age);
  entries_.erase(found);
}

bool BlockCache::has(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.bytes > 0;
}

std::uint64_t BlockCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string BlockCache::summary() const {
  const std::uint64_t asked = asked_.load(std::memory_order_relaxed);
  if (asked == 0) return {};
  const std::uint64_t made = made_.load(std::memory_order_relaxed);
  return std::to_string(made) + " blocks decompressed, " +
         std::to_string((asked - std::min(made, asked)) * 100 / asked) + " % of " + std::to_string(asked) +
         " were cached, in at most " + std::to_string(most_ >> 20) + " MiB";
}

}  // namespace feedline::format
