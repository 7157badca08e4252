// SPDX-License-Identifier: Apache-2.0
#pragma once

// The settings of a pipeline that change while it runs: measures for tune::Controller, and keeps what it decided.
//
// It runs in the consumer's thread, when a batch is handed over, five times a second: there is no thread and no lock
// for it, and threads that fill batches only add up how long they have nothing to do. Those above the number that is
// wanted are parked by the pipeline.

#include <time.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "feedline/loader.h"
#include "telemetry/stage_counters.h"
#include "tune/controller.h"
#include "tune/interval.h"

namespace feedline::pipeline {

struct PipelinePlan;

// How long threads have nothing to do, added up. Not thread-safe: under the pipeline's lock.
class IdleTime {
 public:
  void begin(std::uint64_t now_ns) { ++threads_, began_ns_ += now_ns; }
  void end(std::uint64_t began_ns, std::uint64_t now_ns) {
    --threads_, began_ns_ -= began_ns, ended_ns_ += now_ns - began_ns;
  }
  std::uint64_t total_ns(std::uint64_t now_ns) const { return ended_ns_ + threads_ * now_ns - began_ns_; }

 private:
  // unsigned sums of times may go round: only differences count
  std::uint64_t threads_ = 0, began_ns_ = 0, ended_ns_ = 0;
};

// The environment variable FEEDLINE_CONTROLLER, for tests and benchmarks.
enum class AdaptationMode : std::uint8_t {
  kAuto,
  kOff,     // "off": as many threads as there may be, all the time
  kRandom,  // "random": another number at every batch
};
AdaptationMode adaptation_mode();

// Not thread-safe: under the pipeline's lock.
class Adaptation {
 public:
  // nullptr: the number of threads is the user's, or it is switched off.
  static std::unique_ptr<Adaptation> make(const PipelinePlan& plan, AdaptationMode mode);

  const tune::Settings& settings() const { return settings_; }

  void add_worker(clockid_t cpu_clock) { workers_.push_back({cpu_clock, 0}); }
  void interrupt() { meter_.interrupt(); }  // the border of an epoch
  // These tell whether the settings have changed.
  bool delivered(std::uint64_t now_ns, std::uint64_t waited_ns, const IdleTime& idle,
                 std::span<const telemetry::ThreadCounters> threads);
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);  // and no batch is there
  bool limit_threads(int most);

  ControllerStats stats(std::uint64_t first_ns) const;
  std::uint64_t changes() const { return changes_; }

 private:
  struct Worker {
    clockid_t clock;
    std::uint64_t cpu_ns;  // as last read: the clock of a thread that has ended is gone
  };
  struct Counters {
    std::uint64_t idle_ns = 0, reading_ns = 0, workers_ns = 0, process_ns = 0, throttled_ns = 0;
  };
  struct Made {
    std::uint64_t at_ns;
    tune::Change change;
  };

  Adaptation(const tune::Bounds& bounds, const tune::Settings& first, AdaptationMode mode, bool has_quota);
  Counters read(std::uint64_t now_ns, const IdleTime& idle, std::span<const telemetry::ThreadCounters> threads);
  bool note(std::uint64_t now_ns, const std::optional<tune::Change>& change);
  bool draw(std::uint64_t now_ns);

  const AdaptationMode mode_;
  const bool has_quota_;  // of CPU time: then there may be throttling
  tune::Bounds bounds_;
  tune::Settings settings_;
  tune::Controller controller_;
  tune::IntervalMeter meter_;
  Counters begun_;
  std::vector<Worker> workers_;
  std::minstd_rand random_;
  std::uint64_t changes_ = 0;
  std::deque<Made> made_;  // the latest
};

}  // namespace feedline::pipeline
