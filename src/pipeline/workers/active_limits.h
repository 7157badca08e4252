// SPDX-License-Identifier: Apache-2.0
#pragma once

// The number of working threads and of slots that may be open: fixed, or controlled by Adaptation.
//
// The first threads work. The others are parked: they wait without rows, and their time is not counted.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "pipeline/planning/pipeline_plan.h"
#include "pipeline/workers/adaptation.h"

namespace feedline::pipeline {

// Not thread-safe: guarded by the pipeline's lock unless noted.
class ActiveLimits {
 public:
  explicit ActiveLimits(const PipelinePlan& plan, AdaptationMode mode = adaptation_mode());

  // Any thread, without the lock. The value does not order other memory accesses, which the lock does: a thread that
  // sees a change late parks late.
  bool is_wanted(std::size_t worker) const { return worker < wanted_.load(std::memory_order_relaxed); }
  // The number of changes so far. Any thread, without the lock. Observers compare it to detect changes.
  std::uint64_t changes() const { return changes_; }

  std::uint64_t slots() const { return slots_; }
  // Threads waiting for room continue when no more slots than these are open. Waking one takes as long as filling a
  // batch of short rows, so they sleep until there is room for many.
  std::uint64_t slots_to_wake() const { return short_rows_ ? slots_ / 2 : slots_ - 1; }

  // Idle time of the wanted threads.
  IdleTime& idle() { return idle_; }
  // Registers the calling thread as that worker, to measure its CPU time. Without the lock.
  void add_worker(std::size_t worker);

  // Returns the argument for measured() after Next::kMeasure. Called by the consumer, without the lock.
  Usage usage(std::span<const telemetry::ThreadCounters> threads) { return usage_->read(threads); }

  // These report changed limits by kChanged or true: every thread must then check whether it is wanted.
  Adaptation::Next delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool measured(const Usage& now);
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool begin_epoch(bool feeds_gpu = false);  // at the start of an epoch; feeds_gpu: see EpochOptions

  // nullopt: the numbers are fixed.
  std::optional<Adaptation::Decided> decided() const;

 private:
  void use();

  const std::unique_ptr<Adaptation> adaptation_;  // nullptr: all threads are wanted
  const std::unique_ptr<ThreadUsage> usage_;      // nullptr: all threads are wanted
  const int beside_gpu_;                          // threads
  const bool short_rows_;
  std::atomic<std::size_t> wanted_;
  std::atomic<std::uint64_t> changes_{0};
  std::uint64_t slots_;
  IdleTime idle_;
  bool feeds_gpu_ = false;
};

}  // namespace feedline::pipeline
