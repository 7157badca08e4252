// SPDX-License-Identifier: Apache-2.0
#pragma once

// Joins the plan and a cache of this machine: which copies go when there is no room, and whole shards that are fetched
// before their first sample is needed.
//
//   threads that read    reached() ──► the place in the plan ──► ShardTimetable ◄── NextUse ── NodeCache, any thread
//                                      what was read to its end: let go of
//   one thread           what is wanted next: fetched whole, and held until it was read
//
// Without it a shard is fetched with its first bytes, whose reader waits for all of it; and what is open stays in the
// cache for good, so that one that is too small keeps the first shards, and reads all others sample by sample.
//
// Nothing depends on it: what is not there when it is read is fetched then.

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
#include "pipeline/fetch_order.h"
#include "pipeline/shard_timetable.h"

namespace feedline::pipeline {

// Any thread may call reached() and explain(); the rest belongs to the pipeline's caller.
class CopiesAhead {
 public:
  // nullptr: nothing is cached, the caller gives the order, or the format does not say what its shards are. The plan
  // outlives it.
  static std::unique_ptr<CopiesAhead> make(const format::RecordFormat& format, const PipelinePlan& plan);
  ~CopiesAhead();  // stop()

  // goes_on: another epoch is likely to follow the one that begins.
  void begin(bool goes_on);
  // A sample of this row is read.
  void reached(const PlanRow& row);
  void cancel();  // what is being fetched ends, and nothing more is
  void stop();    // cancel(), and ends the thread
  std::string explain() const;

 private:
  // What the cache asks of the plan. It may ask while this object goes.
  using Shards = std::vector<format::StoredShard>;
  struct Place {
    Place(ShardTimetable timetable_of, Shards all, std::unordered_map<std::string, std::size_t> named);
    mutable std::mutex mutex;
    ShardTimetable timetable;  // guarded by it
    const Shards shards;
    const std::unordered_map<std::string, std::size_t> numbers;  // of shards, by what the cache calls them
    std::uint64_t until(const cache::Entry& entry) const;
  };
  CopiesAhead(std::shared_ptr<const cache::CachedStorage> storage, std::shared_ptr<Place> place, std::uint64_t window);
  void run();
  bool wait();  // false: it ends
  struct Wanted {
    std::vector<std::size_t> shards;
    std::size_t being_read = 0;  // the first of them
  };
  void let_go_of_past();
  Wanted wanted() const;
  void fetch_wanted();
  void bring(std::size_t number);
  bool is_held(std::size_t shard) const;
  bool has_news() const;

  const std::shared_ptr<const cache::CachedStorage> storage_;
  const std::shared_ptr<Place> place_;
  const std::shared_ptr<const cache::NextUse> followed_;
  const std::size_t ahead_;  // shards at a time
  const bool walks_;         // through the shards; else nothing is fetched ahead
  const bool is_too_large_;  // for the cache, all together
  cache::Stop stop_;
  std::atomic<std::uint64_t> brought_{0};
  // What the latest row was of: most rows need no lock. Written under mutex_.
  std::atomic<std::uint64_t> batch_seen_{0};     // its number and 1; 0: none yet
  std::atomic<const void*> plan_seen_{nullptr};  // only compared

  mutable std::mutex mutex_;
  std::condition_variable changed_cv_;
  // guarded by mutex_
  std::uint64_t next_change_ = 0;  // place in the epoch
  bool has_changed_ = false, goes_on_ = false, is_stopping_ = false;
  std::map<std::size_t, cache::Kept> held_;  // shards that are wanted, until they were read
  std::vector<bool> was_read_;               // or is being read, in this epoch

  std::unordered_map<std::size_t, std::uint64_t> refused_;  // the thread's: shards, and NodeCache::changes() then
  std::optional<base::Thread> thread_;                      // last: it uses all of the above
};

}  // namespace feedline::pipeline
