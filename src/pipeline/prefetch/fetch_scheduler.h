// SPDX-License-Identifier: Apache-2.0
#pragma once

// Connects the threads that read samples and the thread that fetches them. Contains the lock and the state that these
// threads share.
//
//   pipeline's owner     begin(), give(), stop()
//   reader threads       take() ──────────► turn_far(), started()
//   fetching thread      serve_by() ─► next() ─► kFetch: a read is started ─► finished()
//                                             ─► kPlanEpoch: planned       ─► follow()
//                                             ─► kMakeEntry: into `fresh`
//                                             ─► kWait: for a read or a wake-up ─► finished()
//                                             ─► kCancel: all reads in flight, then kWait for them; then kEnd
//                        break_off() if it ends by an exception
//
// The lock is held briefly, like that of the pipeline (brief_lock.h). Fetches are found by sample number, and each
// wakes only the thread that waits for it. System calls (waking a thread, freeing memory) and planning an epoch happen
// outside the lock.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/brief_lock.h"
#include "feedline/error.h"
#include "feedline/loader.h"
#include "pipeline/prefetch/fetch_order.h"
#include "pipeline/prefetch/fetch_pool.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

class FetchScheduler {
 public:
  using Entry = FetchTable::Entry;
  using Entries = FetchTable::Entries;

  // turns_near: stop fetching once all fetches are served from memory. The plan must outlive this object. parts: the
  // maximum number of objects per sample. joins: see FetchPool.
  FetchScheduler(const PipelinePlan& plan, std::size_t parts, bool turns_near, bool joins, telemetry::HeldBytes& held);

  // May be called by any thread without the lock: returns whether samples are fetched ahead.
  bool is_far() const { return is_far_.load(std::memory_order_relaxed); }
  // May be called by any thread without the lock: returns whether fetching has stopped because fetches were served from
  // memory.
  bool has_turned_near() const { return has_turned_near_.load(std::memory_order_relaxed); }

  // ---- the pipeline's owner ----
  void begin(bool goes_on, std::uint64_t epoch = 0);
  void give(std::span<const GivenSample> samples, std::uint64_t oldest);
  void stop();  // the fetching thread cancels all reads in flight and ends

  // ---- reader threads ----
  // Swaps the fetched parts of this row's sample with `parts` and returns their number; waits if the fetch is in
  // flight. Returns nullopt if the sample was not fetched. key: as of FetchPool::claim(). part_read: set if only this
  // range was fetched. Requires: `parts` has the maximum number of elements.
  std::optional<std::size_t> take(const PlanRow& row, std::uint64_t sample, const std::shared_ptr<FetchWaiter>& waiter,
                                  FetchTable::Parts& parts, std::shared_ptr<PartRead>& part_read,
                                  const base::SampleKey* key = nullptr);
  // Starts fetching. If this returns true, the caller must start the thread and report to started() whether that
  // succeeded.
  bool turn_far();
  void started(bool is_running);

  // ---- the fetching thread ----
  void serve_by(storage::FetchQueue& queue);  // valid until next() returned kEnd or break_off() was called
  struct Step {
    enum class Kind : std::uint8_t { kFetch, kPlanEpoch, kMakeEntry, kWait, kCancel, kEnd } kind;
    Entry* entry = nullptr;            // kFetch: only this thread finishes it, so its address is stable
    FetchOrder::PlannedEpoch ended{};  // kPlanEpoch
  };
  // fresh: new entries, which are used if no entry is spare.
  Step next(Entries& fresh);
  void finished(std::span<storage::Fetch* const> fetches);  // parts of entries
  void finished(Entry& entry);                              // for an entry with nothing to fetch
  void follow(const FetchOrder::PlannedEpoch& ended, FetchOrder::PlannedEpoch& following);
  std::vector<storage::Fetch*> under_way();
  // Ends fetching: from now on, reader threads read samples themselves. Does not allocate.
  void break_off();

  // ---- any thread ----
  std::uint64_t held_bytes() const;
  struct Report {
    std::uint64_t mean_bytes = 0, most_under_way = 0, latency_ns = 0;
    std::string_view queue;
  };
  Report report() const;

 private:
  // Work to do after the lock is released.
  struct After {
    storage::FetchQueue* sleeping = nullptr;             // to wake
    Entries unused;                                      // to free
    std::vector<std::shared_ptr<FetchWaiter>> finished;  // waiting for these fetches
    FetchOrder::Past past;
  };
  static void do_after(After& after);
  // under mutex_
  void go_near(After& after);
  void wake(After& after);
  void finish(Entry& entry, After& after);

  const std::size_t parts_;  // maximum per sample
  const bool turns_near_;
  std::atomic<bool> is_far_{false};
  std::atomic<bool> has_turned_near_{false};  // since it was far; both are written under mutex_

  mutable std::mutex mutex_;
  // guarded by mutex_
  FetchOrder order_;
  FetchPool pool_;
  int near_ = 0;  // fetches served from memory, minus weighted others
  // the fetching thread's
  storage::FetchQueue* queue_ = nullptr;
  bool is_asleep_ = false;    // until its queue is woken
  bool is_starting_ = false;  // a thread is starting it
  bool has_started_ = false;
  bool is_broken_ = false;  // it has died
  bool stopping_ = false;
};

}  // namespace feedline::pipeline
