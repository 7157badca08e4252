// SPDX-License-Identifier: Apache-2.0
#pragma once

// Connects the plan and the node's cache: selects the copies to evict if there is no room, and fetches whole shards
// before their first sample is needed.
//
//   reader threads       reached() ──► the position in the plan ──► ShardSchedule ◄── NextUse ── NodeCache, any thread
//                                      fully read shards are released
//   one thread           fetches the next wanted shards whole, and holds them until they were read
//
// Without the prefetcher, the reader of a shard's first bytes waits for the whole shard. In addition, open shards are
// never evicted, so a small cache would store the first shards, and all others would be read sample by sample.
//
// This is only an optimization: missing shards are fetched when they are read.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread.h"
#include "cache/node/cached_storage.h"
#include "format/format.h"
#include "pipeline/prefetch/fetch_order.h"
#include "pipeline/prefetch/shard_schedule.h"

namespace feedline::pipeline {

// Any thread may call reached() and explain(); only the pipeline's owner may call the other functions.
class ShardPrefetcher {
 public:
  // Returns nullptr if no storage is cached, the caller passes the order, or the format does not report its shards. The
  // plan must outlive this object.
  static std::unique_ptr<ShardPrefetcher> make(const format::RecordFormat& format, const PipelinePlan& plan);
  ~ShardPrefetcher();  // calls stop()

  // goes_on: another epoch is likely to follow this one.
  void begin(bool goes_on);
  // Called when a sample of this row is read.
  void reached(const PlanRow& row);
  void cancel();  // aborts the current fetch and starts no others
  void stop();    // cancels and joins the thread
  std::string explain() const;

 private:
  // The state that the cache reads to find out when a copy is needed. This state may outlive the prefetcher.
  using Shards = std::vector<format::StoredShard>;
  struct SharedSchedule {
    SharedSchedule(ShardSchedule schedule_of, Shards all, std::unordered_map<std::string, std::size_t> named);
    mutable std::mutex mutex;
    ShardSchedule schedule;  // guarded by mutex
    const Shards shards;
    const std::unordered_map<std::string, std::size_t> numbers;  // shard numbers, by the cache's names
    std::uint64_t until(const cache::Entry& entry) const;
  };
  ShardPrefetcher(std::shared_ptr<const cache::CachedStorage> storage, std::shared_ptr<SharedSchedule> shared,
                  std::uint64_t window);
  void run();
  bool wait();  // returns false to stop
  struct Wanted {
    std::vector<std::size_t> shards;
    std::size_t being_read = 0;  // the first shards in the list
  };
  void release_past();
  Wanted wanted() const;
  void fetch_wanted();
  void fetch_shard(std::size_t number);
  bool is_held(std::size_t shard) const;
  bool has_news() const;

  const std::shared_ptr<const cache::CachedStorage> storage_;
  const std::shared_ptr<SharedSchedule> shared_;
  const std::shared_ptr<const cache::NextUse> subscription_;
  const std::size_t ahead_;  // number of shards
  const bool walks_;         // the order reads shard by shard; otherwise nothing is prefetched
  const bool is_too_large_;  // the shards together exceed the cache
  cache::Stop stop_;
  std::atomic<std::uint64_t> fetched_{0};
  // The position of the latest row, which lets most rows skip the lock. Written under mutex_.
  std::atomic<std::uint64_t> batch_seen_{0};     // its number plus 1; 0 if there was none
  std::atomic<const void*> plan_seen_{nullptr};  // only compared

  mutable std::mutex mutex_;
  std::condition_variable changed_cv_;
  // guarded by mutex_
  std::uint64_t next_change_ = 0;  // position in the epoch
  bool has_changed_ = false, goes_on_ = false, is_stopping_ = false;
  std::map<std::size_t, cache::HeldCopy> held_;  // wanted shards, until they were read
  std::vector<bool> was_read_;                   // or is being read, in this epoch

  std::unordered_map<std::size_t, std::uint64_t> refused_;  // the thread's: shards, and NodeCache::changes() then
  std::optional<base::Thread> thread_;                      // last member: it uses all of the above
};

}  // namespace feedline::pipeline
