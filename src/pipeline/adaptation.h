// SPDX-License-Identifier: Apache-2.0
#pragma once

// The settings of a pipeline that change while it runs: cuts intervals for tune::Controller, and keeps what it decided.
//
// It runs in the consumer's thread, when a batch is handed over, five times a second: there is no thread and no lock
// for it, and threads that fill batches only add up how long they have nothing to do. What the system must be asked
// for is asked without the lock, between delivered() and measured(). Threads above the number that is wanted are parked
// by the pipeline.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>

#include "feedline/loader.h"
#include "pipeline/thread_usage.h"
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

  void interrupt() { meter_.interrupt(); }  // the border of an epoch
  enum class Next : std::uint8_t {
    kNothing,
    kMeasure,  // measured() wants to know what the threads have used
    kChanged,  // the settings have
  };
  Next delivered(std::uint64_t now_ns, std::uint64_t waited_ns, const IdleTime& idle);
  // These tell whether the settings have changed.
  bool measured(const Usage& now);                            // after kMeasure, before the next delivered()
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);  // and no batch is there
  bool limit_threads(int most);

  std::uint64_t changes() const { return changes_; }

  // What stats() are made of, copied in one piece.
  struct Made {
    std::uint64_t at_ns = 0;
    tune::Change change;
  };
  struct Decided {
    tune::Settings settings;
    int limit = 0;                // threads
    std::uint64_t changes = 0;    // so far
    std::array<Made, 64> latest;  // change c at c modulo their number

    ControllerStats stats(std::uint64_t first_ns) const;
  };
  Decided decided() const { return {settings_, bounds_.most.threads, changes_, latest_}; }

 private:
  struct Moment {
    std::uint64_t at_ns = 0, idle_ns = 0;
    Usage usage;
  };

  Adaptation(const tune::Bounds& bounds, const tune::Settings& first, AdaptationMode mode);
  bool note(std::uint64_t now_ns, const std::optional<tune::Change>& change);
  bool draw(std::uint64_t now_ns);

  const AdaptationMode mode_;
  tune::Bounds bounds_;
  tune::Settings settings_;
  tune::Controller controller_;
  tune::IntervalMeter meter_;
  Moment begun_;          // where the interval that is measured begins
  Moment ended_;          // where it ends, but for its usage
  bool is_full_ = false;  // it is one
  std::minstd_rand random_;
  std::uint64_t changes_ = 0;
  std::array<Made, 64> latest_;
};

}  // namespace feedline::pipeline
