// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the threads that fill batches and the consumer meet: the pipeline's one lock, everything under it, and what
// waits for it to change. Worker threads come for rows, the consumer for batches.
//
//   who        calls             sleeps on    until
//   worker     next()            work_cv_     there is a row, room for another slot, or the end
//                                parked_cv_   it is wanted, or the end
//   consumer   poll()            ready_cv_    the last row of a slot was finished, or something failed
//
// Between two calls of next() a worker fills the rows of its task and takes more of the same batch, without the lock
// (row_tickets.h). It comes back when the batch has none left, or earlier where must_return() says that there is
// something to know: the end, a refill that goes first, or that it is not wanted any more.
//
// The lock is held briefly (brief_lock.h). What takes long is done beside it, by whoever has come upon it:
//
//   who        does                                  and meanwhile
//   worker     gets memory for a batch, places it    claiming_: one at a time, the others wait for its rows
//   worker     moves pages under rows                the slot's tickets are paused: likewise
//   worker     gives up a batch that is no one's     nothing waits
//   worker     mixes a final batch, composes its late fields, gives it to the device      the batch is not ready
//   consumer   makes a batch of a slot               it belongs to no epoch any more
//   consumer   measures, drops epochs                leaving_: their batches count until their memory is free
//   either     wakes others                          what they are woken for is there
//
// Three things end what runs, in this order of precedence:
//
//   stop()             everything, for good
//   broken_            the pipeline: a thread is gone
//   failure_           the epoch: no memory for a batch, or too many bad samples. begin() starts another one
//
// A slot belongs to its Epoch from claim() until poll() takes it out; the rows of it that a worker has in hand are that
// worker's (slot.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "feedline/loader.h"
#include "pipeline/batch_memory.h"
#include "pipeline/brief_lock.h"
#include "pipeline/delivery.h"
#include "pipeline/epochs.h"
#include "pipeline/progress.h"
#include "pipeline/read_ahead.h"
#include "pipeline/row_filler.h"
#include "pipeline/settings_in_use.h"
#include "telemetry/held_bytes.h"
#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

class Exchange {
 public:
  // What it is between. Everything that is referred to outlives the exchange.
  struct Parts {
    const Recipe& recipe;
    const PipelinePlan& plan;
    const BadSamplePolicy& policy;
    std::span<telemetry::ThreadCounters> counters;  // one per worker, and the consumer's last
    std::span<const Progress> progress;             // one per worker
    ReadAhead* ahead;                               // nullptr: the format has nothing to read ahead
    std::shared_ptr<device::Device> device;         // what batches are filled for
  };
  explicit Exchange(const Parts& parts);

  // ---- the consumer, one thread at a time

  // Abandons what runs. following: nullptr, or the epoch that is prepared meanwhile. feeds_gpu: see EpochOptions.
  Result<void> begin(const EpochStart& start, std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following,
                     bool feeds_gpu = false);
  Result<void> give(std::vector<GivenSample> samples);
  Result<void> end_giving();
  Result<void> prepare() { return memory_.prepare(); }  // before the first batch: see BatchMemory
  Result<Loader::Polled> poll(std::chrono::milliseconds wait, Batch& out);
  void interrupt();  // any thread: see Loader
  void stop();       // workers get no rows any more
  void clear();      // once they are gone: lets go of every batch

  // ---- a worker's thread

  bool prepares() const { return memory_.prepares(); }  // what Epoch::Config is to say
  void add_worker(std::size_t worker) { settings_.add_worker(worker); }
  // Settles the batch of `task`, where the worker finished its last row, and then makes it the next rows to fill.
  // false: the pipeline stops.
  bool next(std::size_t worker, Task& task, bool finished);
  // Before the rows are finished.
  void note(const Task& task, std::span<RowFiller::Noted> rows);
  // Gives rows that nobody has begun pages that the training loop has released. Takes the lock only where there are
  // any.
  void reuse_pages(Slot& slot);
  // Takes no lock.
  bool must_return(std::size_t worker) const {
    return recall_.load(std::memory_order_relaxed) || !settings_.is_wanted(worker);
  }
  void break_off(Error error);  // the worker is gone

  // ---- any thread

  EpochStart position() const;
  bool has_batches() const;
  std::vector<std::uint64_t> rows_per_rank() const;
  std::vector<BadSample> bad_samples(std::uint64_t from) const;
  std::uint64_t bad_count() const;
  std::uint64_t changes() const { return settings_.changes(); }
  void add_to(LoaderStats& stats) const;
  // What a batch takes for its late fields, as of the latest ones; before the first, as the plan has it.
  std::uint64_t late_bytes() const;

 private:
  // Who has something to look at: told under the lock, woken without it.
  struct Wakes {
    bool consumer = false, one_worker = false, all_workers = false, parked = false;
    bool any() const { return consumer || one_worker || all_workers || parked; }
  };
  // What the consumer has in hand between two looks under the lock.
  struct HandOver {
    std::shared_ptr<Slot> slot;
    std::uint64_t index = 0;  // of its batch
    Delivery::Noted noted = Delivery::Noted::kNothing;
    std::uint64_t asked_ns = 0, got_ns = 0, number = 0;
    bool measures = false;
  };

  // under mutex_
  std::shared_ptr<const Error> ended() const;  // nullptr: an epoch can begin
  bool has_room() const;
  void note_held();
  void wait_for_work(BriefLock& lock, std::size_t worker);
  void update_recall();
  void note_ready(HandOver& over, bool was_ready, Wakes& wakes);
  // with it, and without it meanwhile
  void open_slot(BriefLock& lock, Wakes& wakes);
  void settle(BriefLock& lock, std::size_t worker, const Task& task, Wakes& wakes);
  void make_ready(BriefLock& lock, std::size_t worker, const Task& task, std::shared_ptr<Slot> slots, Wakes& wakes);
  void let_go(BriefLock& lock, DroppedEpochs dropped, Wakes& wakes);
  void let_go(BriefLock& lock, std::shared_ptr<Slot> slot, Wakes& wakes);
  Result<Loader::Polled> late(BriefLock& lock, std::uint64_t started_ns);
  // without it
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
  // guarded by mutex_, but for what says that it is not
  Epochs epochs_;
  BatchMemory memory_;
  SettingsInUse settings_;
  Delivery delivery_;
  bool claiming_ = false;                 // a worker gets memory for the next batch
  std::uint64_t leaving_ = 0;             // batches of no epoch, whose memory is not free yet
  std::uint64_t leaving_late_bytes_ = 0;  // what is composed of them
  std::uint64_t late_bytes_;              // of a batch, lately: what the next one is taken to need for its late fields
  bool late_is_guess_;                    // it is nobody's measure
  // made without it, so that under it errors are neither copied nor freed
  std::shared_ptr<const Error> failure_, broken_;
  bool stopping_ = false;
  bool interrupted_ = false;       // and poll() has not said so yet
  telemetry::HeldBytes own_held_;  // any thread; used where nothing is read ahead
  telemetry::HeldBytes& held_;     // any thread
  telemetry::HeldPart held_bytes_;
};

}  // namespace feedline::pipeline
