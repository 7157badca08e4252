// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where threads that come for samples meet the one that fetches them. The lock of both is here, and all that they
// share.
//
//   pipeline's caller    begin(), give(), stop()
//   threads that read    take() ──────────► turn_far(), started()
//   fetching thread      serve_by() ─► next() ─► kFetch: a read is started ─► finished()
//                                             ─► kPlanEpoch: planned       ─► follow()
//                                             ─► kMakeEntry: into `fresh`
//                                             ─► kWait: for what is under way, or a wake-up ─► finished()
//                                             ─► kCancel: all that is under way, and kWait's; then kEnd
//                        break_off() where it ends by an exception
//
// The lock is held briefly, as the pipeline's (brief_lock.h): fetches are found by their sample, each wakes the one
// thread that waits for it, and what asks the system for something (to wake a thread, to give memory back, to plan an
// epoch) happens beside the lock.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "feedline/loader.h"
#include "pipeline/brief_lock.h"
#include "pipeline/fetch_order.h"
#include "pipeline/fetch_stock.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

class FetchExchange {
 public:
  using Entry = FetchTable::Entry;
  using Entries = FetchTable::Entries;

  // turns_near: is it, once everything that is fetched turns out to be in memory? The plan outlives it.
  // parts: objects of a sample, at most. joins: see FetchStock.
  FetchExchange(const PipelinePlan& plan, std::size_t parts, bool turns_near, bool joins, telemetry::HeldBytes& held);

  // Any thread, and without the lock: are samples fetched?
  bool is_far() const { return is_far_.load(std::memory_order_relaxed); }
  // Likewise: not any more, as what was fetched was in memory?
  bool has_turned_near() const { return has_turned_near_.load(std::memory_order_relaxed); }

  // ---- the pipeline's caller ----
  void begin(bool goes_on);
  void give(std::span<const GivenSample> samples, std::uint64_t oldest);
  void stop();  // the fetching thread cancels all that is under way, and ends

  // ---- threads that come for samples ----
  // What was fetched of this row's sample, in exchange for `parts`, and how many of them it takes; waits for it where
  // it is under way. nullopt: nobody has fetched it. Requires: as many parts as a sample may have.
  std::optional<std::size_t> take(const PlanRow& row, std::uint64_t sample, const std::shared_ptr<FetchWaiter>& waiter,
                                  FetchTable::Parts& parts);
  // Samples are fetched from now on. true: when the caller has started the thread for it, and has said in started()
  // whether there is one.
  bool turn_far();
  void started(bool is_running);

  // ---- the fetching thread ----
  void serve_by(storage::FetchQueue& queue);  // which stays until next() has given kEnd, or break_off() was called
  struct Step {
    enum class Kind : std::uint8_t { kFetch, kPlanEpoch, kMakeEntry, kWait, kCancel, kEnd } kind;
    Entry* entry = nullptr;            // kFetch: only this thread finishes it, so that it stays where it is
    FetchOrder::PlannedEpoch ended{};  // kPlanEpoch
  };
  // fresh: entries without memory of their own, to use where none is spare.
  Step next(Entries& fresh);
  void finished(std::span<storage::Fetch* const> fetches);  // parts of entries
  void finished(Entry& entry);                              // of which there was nothing to fetch
  void follow(const FetchOrder::PlannedEpoch& ended, FetchOrder::PlannedEpoch& following);
  std::vector<storage::Fetch*> under_way();
  // The threads read by themselves from now on. Takes no memory.
  void break_off();

  // ---- any thread ----
  std::uint64_t held_bytes() const;
  struct Report {
    std::uint64_t mean_bytes = 0, most_under_way = 0, latency_ns = 0;
    std::string_view queue;
  };
  Report report() const;

 private:
  // What is to be done once the lock is given back.
  struct After {
    storage::FetchQueue* sleeping = nullptr;             // is to be woken
    Entries unused;                                      // their memory goes back
    std::vector<std::shared_ptr<FetchWaiter>> finished;  // for whom a fetch is
    FetchOrder::Past past;
  };
  static void do_after(After& after);
  // under mutex_
  void go_near(After& after);
  void wake(After& after);
  void finish(Entry& entry, After& after);

  const std::size_t parts_;  // of a sample, at most
  const bool turns_near_;
  std::atomic<bool> is_far_{false};
  std::atomic<bool> has_turned_near_{false};  // since it was far; both are written under mutex_

  mutable std::mutex mutex_;
  // guarded by mutex_
  FetchOrder order_;
  FetchStock stock_;
  int near_ = 0;  // fetches that found their bytes in memory, less those that did not
  // of the fetching thread
  storage::FetchQueue* queue_ = nullptr;
  bool is_asleep_ = false;    // until its queue is woken
  bool is_starting_ = false;  // somebody starts it
  bool has_started_ = false;
  bool is_broken_ = false;  // it is gone
  bool stopping_ = false;
};

}  // namespace feedline::pipeline
