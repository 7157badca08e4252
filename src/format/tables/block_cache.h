// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cache of decompressed blocks, shared by all threads of a dataset. A block that was evicted before most of its
// values were read is read at random: the second time it is stored in a file (block_store.h), so it is never
// decompressed again.

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/fork_mutex.h"
#include "feedline/error.h"
#include "format/tables/block_store.h"

namespace feedline::format {

// Cache size of a dataset: pages of photos have about a megabyte, and a page of labels has those of thousands of
// samples.
inline constexpr std::uint64_t kBlockCacheBytes = std::uint64_t{256} << 20;

class BlockCache;
// For a dataset's tables: of kBlockCacheBytes, unless a test forces another size.
std::shared_ptr<BlockCache> new_block_cache();

// Thread-safe. A thread that requests a block which another thread is making waits for it.
class BlockCache {
 public:
  struct Key {
    const void* table = nullptr;
    std::uint64_t offset = 0;  // offset of the block in its file
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Block {
    std::shared_ptr<const void> content;
    std::uint64_t bytes = 0;   // in memory of its own
    std::uint64_t values = 1;  // the number of requests that a reader in order makes
    bool is_stored = false;    // whether the other bytes are in the block store
  };
  // store: the maker should move the block's bytes to it; nullptr: to memory.
  using Make = std::function<Result<Block>(BlockStore* store)>;

  // most: maximum total size of the cached blocks in memory. A larger block is returned, but not cached.
  explicit BlockCache(std::uint64_t most, std::shared_ptr<BlockStore> store = std::make_shared<BlockStore>())
      : most_(most), store_(std::move(store)) {}

  // Returns a cached block, or makes it. An error of `make` is returned to this caller only; the next call tries again.
  Result<std::shared_ptr<const void>> get(const Key& key, const Make& make);
  // Removes a block that will not be requested again; threads that wait for it still get it.
  void drop(const Key& key);
  // Removes a block that is in memory, to store it the next time it is made.
  void store_next(const Key& key);
  // Returns whether the block is cached. It may be evicted before it is requested.
  bool has(const Key& key) const;
  // "512 blocks decompressed, 90 % of 5,000 were cached, in at most 256 MiB; 900 MiB of blocks are in a file"
  std::string summary() const;
  std::uint64_t bytes() const;
  std::uint64_t made() const { return made_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    ForkMutex mutex;  // locked while the block is made
    Block block;      // guarded by mutex
  };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::list<Key>::iterator age;  // position in ages_
    std::uint64_t bytes = 0;       // size included in bytes_; 0 while the block is being made
    std::uint64_t values = 0, requests = 0;
    bool is_stored = false;  // never evicted, and not in ages_
  };

  std::shared_ptr<Slot> slot_of(const Key& key);
  BlockStore* store_for(const Key& key) const;
  std::string summary_of_store() const;
  void keep(const Key& key, const std::shared_ptr<Slot>& slot);
  void forget(const Key& key, const std::shared_ptr<Slot>& slot);
  void evict(std::map<Key, Entry>::iterator entry);

  const std::uint64_t most_;
  const std::shared_ptr<BlockStore> store_;
  mutable ForkMutex mutex_;
  std::map<Key, Entry> entries_;                // this and the next four are guarded by mutex_
  std::list<Key> ages_;                         // most recently used first
  std::set<Key> read_at_random_;                // evicted before most of their values were read
  std::uint64_t bytes_ = 0, stored_bytes_ = 0;  // stored_bytes_: of stored blocks, included in bytes_
  std::atomic<std::uint64_t> made_{0}, asked_{0};
};

}  // namespace feedline::format
