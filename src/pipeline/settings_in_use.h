// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many threads work, of those there are, and how many slots may be open: fixed, or what Adaptation makes of it.
//
// The first threads work. Those above are parked: they wait, with no row in their hands, and their time is nobody's.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "pipeline/adaptation.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {

// Not thread-safe: under the pipeline's lock, but for what says that it is called without.
class SettingsInUse {
 public:
  explicit SettingsInUse(const PipelinePlan& plan, AdaptationMode mode = adaptation_mode());

  // Any thread, without the lock. What it says orders nothing, the lock does: a thread that is told otherwise a little
  // later parks a little later.
  bool is_wanted(std::size_t worker) const { return worker < wanted_.load(std::memory_order_relaxed); }
  // Of the settings, so far. Any thread, without the lock. Whoever watches it looks again.
  std::uint64_t changes() const { return changes_; }

  std::uint64_t slots() const { return slots_; }
  // Threads that found no room go on when no more slots than these are open. Waking one takes as long as filling a
  // batch of short rows: they sleep until there is room for many.
  std::uint64_t slots_to_wake() const { return short_rows_ ? slots_ / 2 : slots_ - 1; }

  // Of threads that are wanted.
  IdleTime& idle() { return idle_; }
  // The calling thread is that worker, whose CPU time is to be measured. Without the lock.
  void add_worker(std::size_t worker);

  // After Next::kMeasure: what measured() is to be told. The consumer's, without the lock.
  Usage usage(std::span<const telemetry::ThreadCounters> threads) { return usage_->read(threads); }

  // These tell, with kChanged or true, that the settings have changed: every thread has to look whether it is wanted.
  Adaptation::Next delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool measured(const Usage& now);
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);
  bool begin_epoch(bool feeds_gpu = false);  // its border; feeds_gpu: from now on, see EpochOptions

  // nullopt: the numbers are fixed.
  std::optional<Adaptation::Decided> decided() const;

 private:
  void use();

  const std::unique_ptr<Adaptation> adaptation_;  // nullptr: all threads are wanted
  const std::unique_ptr<ThreadUsage> usage_;      // nullptr likewise
  const int beside_gpu_;                          // threads
  const bool short_rows_;
  std::atomic<std::size_t> wanted_;
  std::atomic<std::uint64_t> changes_{0};
  std::uint64_t slots_;
  IdleTime idle_;
  bool feeds_gpu_ = false;
};

}  // namespace feedline::pipeline
