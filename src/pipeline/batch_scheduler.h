// SPDX-License-Identifier: Apache-2.0
#pragma once

// Connects the worker threads and the consumer. This class contains the pipeline's only lock, the state that the lock
// guards, and the condition variables. Worker threads request rows, and the consumer requests batches.
//
//   who        calls             sleeps on    until
//   worker     next()            work_cv_     there is a row, room for another slot, or the end
//                                parked_cv_   it is needed, or the end
//   consumer   poll()            ready_cv_    the last row of a slot was finished, or something failed
//
// Between two calls to next(), a worker fills the rows of its task and takes further rows of the same batch without the
// lock (row_tickets.h). The worker returns when the batch has no rows left, or earlier if must_return() reports an
// event: shutdown, a refill with priority, or a surplus of threads.
//
// The lock is held briefly (brief_lock.h). Long work is done outside the lock, by the thread that found it:
//
//   who        does                                        at the same time
//   worker     allocates and places a batch                claiming_: one at a time, the others wait for its rows
//   worker     maps pages into rows                        the slot's tickets are paused, and the others wait
//   worker     frees a batch of an abandoned epoch         nothing waits
//   worker     mixes a final batch, composes its variable-size fields, starts device work   the batch is not ready
//   consumer   makes a batch of a slot                     it no longer belongs to an epoch
//   consumer   measures, drops epochs                      leaving_: their batches count until their memory is free
//   either     wakes others                                the condition they wait for holds
//
// Three conditions stop the work, in this order of precedence:
//
//   stop()             everything, permanently
//   broken_            the pipeline: a thread has died
//   failure_           the epoch: no memory for a batch, or too many bad samples. begin() starts another one
//
// A slot belongs to its Epoch from claim() until poll() removes it; rows that a worker has taken belong to the worker
// (slot.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/brief_lock.h"
#include "device/device.h"
#include "feedline/loader.h"
#include "pipeline/epoch/batch_memory.h"
#include "pipeline/epoch/delivery.h"
#include "pipeline/epoch/epochs.h"
#include "pipeline/prefetch/read_ahead.h"
#include "pipeline/workers/active_limits.h"
#include "pipeline/workers/progress.h"
#include "pipeline/workers/row_filler.h"
#include "telemetry/held_bytes.h"
#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

class BatchScheduler {
 public:
  // The objects that the scheduler connects. All referenced objects must outlive the scheduler.
  struct Parts {
    const Recipe& recipe;
    const PipelinePlan& plan;
    const BadSamplePolicy& policy;
    std::span<telemetry::ThreadCounters> counters;  // one per worker, then the consumer's
    std::span<const Progress> progress;             // one per worker
    ReadAhead* ahead;                               // nullptr: the format does not support read-ahead
    std::shared_ptr<device::Device> device;         // the target of batches
  };
  explicit BatchScheduler(const Parts& parts);

  // ---- the consumer, one thread at a time

  // Abandons the current epoch. following: the epoch to prepare next, or nullptr. feeds_gpu: see EpochOptions.
  Result<void> begin(const EpochStart& start, std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following,
                     bool feeds_gpu = false);
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<void> prepare() { return memory_.prepare(); }  // before the first batch: see BatchMemory
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& out);
  void interrupt();  // any thread: see Loader
  void stop();       // workers get no more rows
  void clear();      // after the workers have ended: releases all batches

  // ---- worker threads

  bool prepares() const { return memory_.prepares(); }  // the value for Epoch::Config
  void add_worker(std::size_t worker) { limits_.add_worker(worker); }
  // If the worker filled the last row of the batch of `task`, settles the batch. Then sets `task` to the next rows to
  // fill. Returns false if the pipeline has stopped.
  bool next(std::size_t worker, Task& task, bool finished);
  // Must be called before the rows are reported as finished.
  void note(const Task& task, std::span<RowFiller::Noted> rows);
  // Maps pages that the training loop has released into rows that no thread has started. Takes the lock only if there
  // are such pages.
  void reuse_pages(Slot& slot);
  // Takes no lock.
  bool must_return(std::size_t worker) const {
    return recall_.load(std::memory_order_relaxed) || !limits_.is_wanted(worker);
  }
  void break_off(Error error);  // called when a worker dies

  // ---- any thread

  EpochStart position() const;
  bool has_batches() const;
  std::vector<std::uint64_t> rows_per_rank() const;
  std::vector<BadSample> bad_samples(std::uint64_t from) const;
  std::uint64_t bad_count() const;
  std::uint64_t changes() const { return limits_.changes(); }
  void add_to(LoaderStats& stats) const;
  // Returns the expected size of a batch's variable-size fields: as measured on recent batches, or the plan's estimate
  // before the first batch.
  std::uint64_t variable_bytes() const;

 private:
  // The threads to wake: determined under the lock, woken without it.
  struct Wakes {
    bool consumer = false, one_worker = false, all_workers = false, parked = false;
    bool any() const { return consumer || one_worker || all_workers || parked; }
  };
  // The consumer's state between two critical sections of poll().
  struct HandOver {
    std::shared_ptr<Slot> slot;
    std::uint64_t index = 0;  // index of its batch
    Delivery::Noted noted = Delivery::Noted::kNothing;
    std::uint64_t asked_ns = 0, got_ns = 0, number = 0;
    bool measures = false;
  };

  // under mutex_
  std::shared_ptr<const Error> ended() const;  // nullptr if an epoch can begin
  bool has_room() const;
  void note_held();
  void wait_for_work(base::BriefLock& lock, std::size_t worker);
  void update_recall();
  void note_ready(HandOver& over, bool was_ready, Wakes& wakes);
  // called with the lock, releases it temporarily
  void open_slot(base::BriefLock& lock, Wakes& wakes);
  void settle(base::BriefLock& lock, std::size_t worker, const Task& task, Wakes& wakes);
  void make_ready(base::BriefLock& lock, std::size_t worker, const Task& task, std::shared_ptr<Slot> slots,
                  Wakes& wakes);
  void let_go(base::BriefLock& lock, DroppedEpochs dropped, Wakes& wakes);
  void let_go(base::BriefLock& lock, std::shared_ptr<Slot> slot, Wakes& wakes);
  Result<Loader::Polled> late(base::BriefLock& lock, std::uint64_t started_ns);
  // without the lock
  void wake(Wakes& wakes);
  Result<Loader::Polled> hand_over(HandOver& over, Batch& out);
  void refused(const HandOver& over, const Error& error);
  void measure();

  const Parts parts_;
  const std::shared_ptr<const Error> closed_error_, interrupted_error_;
  telemetry::StageCounters& consumer_;
  std::atomic<bool> recall_{false};

  mutable std::mutex mutex_;
  std::condition_variable work_cv_, parked_cv_, ready_cv_;
  // guarded by mutex_ unless noted
  Epochs epochs_;
  BatchMemory memory_;
  ActiveLimits limits_;
  Delivery delivery_;
  bool claiming_ = false;                     // a worker is allocating the next batch
  std::uint64_t leaving_ = 0;                 // batches without an epoch, whose memory is not free yet
  std::uint64_t leaving_variable_bytes_ = 0;  // their composed fields
  std::uint64_t variable_bytes_;              // recent size per batch, the estimate for the next one
  bool variable_is_guess_;                    // not measured yet
  // created outside the lock, so errors are neither copied nor freed under it
  std::shared_ptr<const Error> failure_, broken_;
  bool stopping_ = false;
  bool interrupted_ = false;       // and poll() has not reported it yet
  telemetry::HeldBytes own_held_;  // any thread; used without read-ahead
  telemetry::HeldBytes& held_;     // any thread
  telemetry::HeldPart held_bytes_;
};

}  // namespace feedline::pipeline
