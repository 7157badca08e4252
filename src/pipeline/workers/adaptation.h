// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adjusts the settings of a running pipeline: measures intervals for tune::Controller, and stores the controller's
// decisions.
//
// The adjustment runs on the consumer's thread five times a second, when a batch is delivered. It needs neither its own
// thread nor a lock; worker threads only add up their idle time. System calls are made between delivered() and
// measured(), outside the lock. The pipeline parks surplus threads.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>

#include "feedline/loader.h"
#include "pipeline/workers/thread_usage.h"
#include "tune/controller.h"
#include "tune/interval.h"

namespace feedline::pipeline {

struct PipelinePlan;

// The total idle time of all threads. Not thread-safe: the pipeline's lock guards it.
class IdleTime {
 public:
  void begin(std::uint64_t now_ns) { ++threads_, began_ns_ += now_ns; }
  void end(std::uint64_t began_ns, std::uint64_t now_ns) {
    --threads_, began_ns_ -= began_ns, ended_ns_ += now_ns - began_ns;
  }
  std::uint64_t total_ns(std::uint64_t now_ns) const { return ended_ns_ + threads_ * now_ns - began_ns_; }

 private:
  // unsigned sums of times may wrap: only differences matter
  std::uint64_t threads_ = 0, began_ns_ = 0, ended_ns_ = 0;
};

enum class AdaptationMode : std::uint8_t {
  kAuto,
  kOff,     // always the maximum number of threads
  kRandom,  // a new random number at every batch
};
// Returns kOff if the environment variable FEEDLINE_CONTROLLER is "off", kRandom if a test requests it.
AdaptationMode adaptation_mode();

// Not thread-safe: guarded by the pipeline's lock.
class Adaptation {
 public:
  // Returns nullptr if the user has set the number of threads, or adaptation is off.
  static std::unique_ptr<Adaptation> make(const PipelinePlan& plan, AdaptationMode mode);

  const tune::Settings& settings() const { return settings_; }

  void interrupt() { meter_.interrupt(); }  // at an epoch boundary
  enum class Next : std::uint8_t {
    kNothing,
    kMeasure,  // call measured() with the threads' CPU usage
    kChanged,  // the settings changed
  };
  Next delivered(std::uint64_t now_ns, std::uint64_t waited_ns, const IdleTime& idle);
  // These functions return true if the settings have changed.
  bool measured(const Usage& now);                            // call after kMeasure, before the next delivered()
  bool waits(std::uint64_t now_ns, std::uint64_t waited_ns);  // call while no batch is ready
  bool limit_threads(int most);

  std::uint64_t changes() const { return changes_; }

  // Values for stats().
  struct Made {
    std::uint64_t at_ns = 0;
    tune::Change change;
  };
  struct Decided {
    tune::Settings settings;
    int limit = 0;                // maximum number of threads
    std::uint64_t changes = 0;    // total count
    std::array<Made, 64> latest;  // a ring buffer: change c is at index c modulo its size

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
  Moment begun_;          // start of the current interval
  Moment ended_;          // its end, without usage
  bool is_full_ = false;  // the interval is complete
  std::minstd_rand random_;
  std::uint64_t changes_ = 0;
  std::array<Made, 64> latest_;
};

}  // namespace feedline::pipeline
