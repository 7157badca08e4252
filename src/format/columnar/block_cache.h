// SPDX-License-Identifier: Apache-2.0
#pragma once

// A cache of decompressed blocks, shared by all threads of a dataset. If a block is evicted before most of its values
// were read, access is probably random. When this block is decompressed again, it is stored in a file (block_store.h).
// Blocks of remote files are then stored when they are first decompressed, so that they need not be fetched again.

#include <algorithm>
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
#include "format/columnar/block_store.h"

namespace feedline::format {

// The cache size of a dataset. A page with photos takes about a megabyte, and a page with labels contains the labels of
// thousands of samples.
inline constexpr std::uint64_t kBlockCacheBytes = std::uint64_t{256} << 20;

class BlockCache;
// Returns a cache for the tables of a dataset, with kBlockCacheBytes unless a test sets a different size.
std::shared_ptr<BlockCache> new_block_cache();

// Thread-safe. If a thread requests a block that another thread is decompressing, it waits for the block.
class BlockCache {
 public:
  struct Key {
    const void* table = nullptr;
    std::uint64_t offset = 0;  // offset of the block in its file
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Block {
    std::shared_ptr<const void> content;
    std::uint64_t bytes = 0;        // in memory, outside of the block store
    std::uint64_t values = 1;       // the number of requests that a reader in order makes
    bool is_stored = false;         // whether the other bytes are in the block store
    std::uint64_t plain_bytes = 0;  // after decompression
  };
  // Makes a block. If `store` is not nullptr, the function should move the block's bytes to the store.
  using Make = std::function<Result<Block>(BlockStore* store)>;

  // `most` is the maximum total size of cached blocks in memory. Larger blocks are returned, but not cached.
  explicit BlockCache(std::uint64_t most, std::shared_ptr<BlockStore> store = std::make_shared<BlockStore>())
      : usual_most_(most), store_(std::move(store)), most_(most) {}

  // Returns a cached block, or calls `make`. `requests` is the number of values that the caller reads. Errors from
  // `make` are returned only to this caller, and the next call tries again.
  Result<std::shared_ptr<const void>> get(const Key& key, const Make& make, std::uint64_t requests = 1,
                                          bool is_remote = false);
  // Removes a block that will not be requested again. Threads that wait for the block still receive it.
  void drop(const Key& key);
  // Removes a block from memory, so that it is stored in the file when it is made again.
  void store_next(const Key& key);
  // Removes all blocks of a table that are in memory.
  void drop_all(const void* table);
  // Reserves memory for numbers that stay in memory outside of the cache, which then becomes smaller. If this succeeds,
  // `returned` bytes of earlier claims end. Returns false if more than three quarters of the cache would be reserved.
  bool claim(std::uint64_t bytes, std::uint64_t returned = 0);
  // Reserves memory for numbers that are loaded when a file is opened, at most most() for all files. This memory is
  // not part of the cache.
  bool claim_index(std::uint64_t bytes);
  // Sets a limit of at most most(), which applies to blocks that are cached later. Returns false if more than three
  // quarters of it are claimed.
  bool limit(std::uint64_t bytes);
  std::uint64_t most() const { return usual_most_; }
  // Returns whether the block is cached. The block may be evicted before it is requested.
  bool has(const Key& key) const;
  // Returns whether the block is cached, or being made by a thread for which get() waits.
  bool is_expected(const Key& key) const;
  // "512 blocks decompressed, 90 % of 5,000 were cached, in at most 256 MiB; 900 MiB of blocks are in a file"
  std::string summary() const;
  // The room for blocks: in memory, and on the disk of the block store.
  struct Room {
    std::uint64_t memory = 0, disk = 0;
  };
  Room room() const;
  std::uint64_t bytes() const;
  // The number of blocks that were decompressed so far, and their size.
  std::uint64_t made() const { return made_.load(std::memory_order_relaxed); }
  std::uint64_t plain_bytes() const { return plain_bytes_.load(std::memory_order_relaxed); }

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

  std::shared_ptr<Slot> slot_of(const Key& key, std::uint64_t requests);
  BlockStore* store_for(const Key& key, bool is_remote) const;
  std::string summary_of_store() const;
  void keep(const Key& key, const std::shared_ptr<Slot>& slot);
  void forget(const Key& key, const std::shared_ptr<Slot>& slot);
  void evict(std::map<Key, Entry>::iterator entry);

  std::uint64_t memory_room() const { return most_ - std::min(most_, claimed_); }  // guarded by mutex_

  const std::uint64_t usual_most_;
  const std::shared_ptr<BlockStore> store_;
  mutable ForkMutex mutex_;
  std::uint64_t indexed_ = 0;                   // claimed by claim_index(); guarded by mutex_
  std::uint64_t most_;                          // guarded by mutex_
  std::map<Key, Entry> entries_;                // this and the next five are guarded by mutex_
  std::list<Key> ages_;                         // most recently used first
  std::set<Key> read_at_random_;                // evicted before most of their values were read
  bool is_random_ = false;                      // whether there was such a block
  std::uint64_t bytes_ = 0, stored_bytes_ = 0;  // stored_bytes_: of stored blocks, included in bytes_
  std::uint64_t claimed_ = 0;  // reserved bytes; also guarded by mutex_; at most three quarters of most_
  std::atomic<std::uint64_t> made_{0}, asked_{0}, plain_bytes_{0};
};

}  // namespace feedline::format
