// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/block_cache.h"

#include <algorithm>
#include <vector>

#include "base/test_conditions.h"

namespace feedline::format {

std::shared_ptr<BlockCache> new_block_cache() {
  const std::uint64_t forced = base::test_conditions().block_cache_bytes;
  return std::make_shared<BlockCache>(forced > 0 ? forced : kBlockCacheBytes);
}

std::shared_ptr<BlockCache::Slot> BlockCache::slot_of(const Key& key, std::uint64_t requests) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    if (!found->second.is_stored) ages_.splice(ages_.begin(), ages_, found->second.age);
    found->second.requests += requests;
    return found->second.slot;
  }
  ages_.push_front(key);
  Entry entry{.slot = std::make_shared<Slot>(), .age = ages_.begin(), .requests = requests};
  return entries_.emplace(key, std::move(entry)).first->second.slot;
}

BlockStore* BlockCache::store_for(const Key& key, bool is_remote) const {
  const std::lock_guard lock(mutex_);
  const bool has_room = stored_bytes_ < most_ / 2;  // else the blocks that are not stored would have none
  return has_room && ((is_remote && is_random_) || read_at_random_.contains(key)) ? store_.get() : nullptr;
}

Result<std::shared_ptr<const void>> BlockCache::get(const Key& key, const Make& make, std::uint64_t requests,
                                                    bool is_remote) {
  asked_.fetch_add(1, std::memory_order_relaxed);
  const std::shared_ptr<Slot> slot = slot_of(key, requests);
  const std::lock_guard lock(slot->mutex);  // must not be called with mutex_ held
  if (slot->block.content) return slot->block.content;
  auto made = make(store_for(key, is_remote));
  if (!made) {
    forget(key, slot);
    return std::unexpected(std::move(made).error());
  }
  made_.fetch_add(1, std::memory_order_relaxed);
  plain_bytes_.fetch_add(made->plain_bytes, std::memory_order_relaxed);
  slot->block = std::move(*made);
  keep(key, slot);
  return slot->block.content;
}

// Caches a block and evicts the least recently used blocks. Threads can continue to use evicted blocks.
void BlockCache::keep(const Key& key, const std::shared_ptr<Slot>& slot) {
  const Block& block = slot->block;
  const std::lock_guard lock(mutex_);
  const auto own = entries_.find(key);
  if (own == entries_.end() || own->second.slot != slot) return;  // removed while it was made
  own->second.values = block.values;
  if (block.bytes > memory_room() && !block.is_stored)
    return evict(own);  // caching this block would evict all others, and then this one
  own->second.bytes = block.bytes;
  bytes_ += block.bytes;
  if (block.is_stored) {
    own->second.is_stored = true;
    ages_.erase(own->second.age);
    stored_bytes_ += block.bytes;
    read_at_random_.erase(key);
  }
  for (auto next = ages_.end(); bytes_ > memory_room() && next != ages_.begin();) {
    const auto oldest = entries_.find(*--next);
    if (oldest->second.bytes == 0) continue;  // it is being made
    ++next;
    evict(oldest);
  }
}

// Requires: mutex_ is locked, and the block is not stored.
void BlockCache::evict(std::map<Key, Entry>::iterator entry) {
  if (entry->second.requests * 2 < entry->second.values) {
    read_at_random_.insert(entry->first);
    is_random_ = true;
  }
  bytes_ -= entry->second.bytes;
  ages_.erase(entry->second.age);
  entries_.erase(entry);
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
  if (found == entries_.end() || found->second.bytes == 0 || found->second.is_stored) return;
  bytes_ -= found->second.bytes;
  ages_.erase(found->second.age);
  entries_.erase(found);
}

void BlockCache::store_next(const Key& key) {
  drop(key);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.is_stored) read_at_random_.insert(key);
}

void BlockCache::drop_all(const void* table) {
  std::vector<Key> keys;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_)
      if (key.table == table) keys.push_back(key);
  }
  for (const Key& key : keys) drop(key);
}

bool BlockCache::claim(std::uint64_t bytes, std::uint64_t returned) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t most = most_ - most_ / 4, others = claimed_ - returned;
  if (others > most || bytes > most - others) return false;
  claimed_ = others + bytes;
  return true;
}

bool BlockCache::claim_index(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > usual_most_ - indexed_) return false;
  indexed_ += bytes;
  return true;
}

bool BlockCache::limit(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  most_ = std::min(usual_most_, bytes);
  return claimed_ <= most_ - most_ / 4;
}

bool BlockCache::has(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && (found->second.bytes > 0 || found->second.is_stored);
}

bool BlockCache::is_expected(const Key& key) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(key);
}

BlockCache::Room BlockCache::room() const {
  Room room{.disk = store_->room()};
  const std::lock_guard lock(mutex_);
  room.memory = memory_room();
  return room;
}

std::uint64_t BlockCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string BlockCache::summary() const {
  const std::uint64_t asked = asked_.load(std::memory_order_relaxed);
  if (asked == 0) return {};
  const std::uint64_t made = made_.load(std::memory_order_relaxed);
  std::uint64_t most = 0;
  {
    const std::lock_guard lock(mutex_);
    most = most_;
  }
  return std::to_string(made) + " blocks decompressed, " +
         std::to_string((asked - std::min(made, asked)) * 100 / asked) + " % of " + std::to_string(asked) +
         " were cached, in at most " + std::to_string(most >> 20) + " MiB" + summary_of_store();
}

std::string BlockCache::summary_of_store() const {
  std::string text;
  if (const std::uint64_t bytes = store_->bytes(); bytes > 0)
    text = "; blocks read at random were stored in the cache folder (" + std::to_string(bytes >> 20) + " MiB)";
  if (const std::string problem = store_->problem(); !problem.empty())
    text += "; other blocks are decompressed again for each sample, because they cannot be stored: " + problem;
  return text;
}

}  // namespace feedline::format
