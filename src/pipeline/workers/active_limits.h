// SPDX-License-Identifier: Apache-2.0
#pragma once

// The number of active threads, and the number of slots that may be open. Both numbers are fixed, or controlled by
// Adaptation.
//
// The threads with the lowest numbers are active. All other threads are parked: they wait without taking rows, and
// their waiting time is not counted.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "pipeline/planning/pipeline_plan.h"
#include "pipeline/workers/adaptation.h"

namespace feedline::pipeline {

// Not thread-safe: the pipeline's lock guards all functions except where noted.
class ActiveLimits {
 public:
  explicit ActiveLimits(const PipelinePlan& plan, AdaptationMode mode = adaptation_mode());

  // May be called by any thread without the lock. The value does not order other memory accesses (the lock does), so a
  // thread may notice a change late and then parks late.
  bool is_wanted(std::size_t worker) const { return worker < wanted_.load(std::memory_order_relaxed); }
  // Returns the number of changes so far. May be called by any thread without the lock. Observers compare this number
  // to detect changes.
  std::uint64_t changes() const { return changes_; }

  std::uint64_t slots() const { return slots_; }
  // Threads that wait for room continue when at most this many slots are open. Waking a thread takes as long as filling
  // a batch of short rows, so threads sleep until there is room for many batches.
  std::uint64_t slots_to_wake() const { return short_rows_ ? slots_ / 2 : slots_ - 1; }

  // The idle time of the active threads.
  IdleTime& idle() { return idle_; }
  // Registers the calling thread as this worker, to measure its CPU time. Without the lock.
  void add_worker(std::size_t worker);

  // Returns the argument of measured() after Next::kMeasure. Called by the consumer without the lock.
  Usage usage(std::span<const telemetry::ThreadCounters> threads) { return usage_->read(threads); }

  // These functions return kChanged or true if the limits have changed; every thread must then check whether it is
  // active.
  Adaptation::Next delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool measured(const Usage& now);
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool begin_epoch(bool feeds_gpu = false);  // at the start of an epoch; feeds_gpu: see EpochOptions

  // Returns nullopt if the limits are fixed.
  std::optional<Adaptation::Decided> decided() const;

 private:
  void use();

  const std::unique_ptr<Adaptation> adaptation_;  // nullptr: all threads are wanted
  const std::unique_ptr<ThreadUsage> usage_;      // nullptr: all threads are wanted
  const int threads_with_gpu_;                    // threads
  const bool short_rows_;
  std::atomic<std::size_t> wanted_;
  std::atomic<std::uint64_t> changes_{0};
  std::uint64_t slots_;
  IdleTime idle_;
  bool feeds_gpu_ = false;
};

}  // namespace feedline::pipeline
