// SPDX-License-Identifier: Apache-2.0
#pragma once

// Determines during training how many threads fill batches, and how many batches they prefetch. The method is hill
// climbing on measured intervals. The controller uses no clock, no threads, and no information about the machine.
//
//   hold     measures; if there is something to gain, tries other settings:
//              more      the loop waits, and threads are available
//              fewer     the loop waits, and the threads wait for storage or use CPUs that the loop needs
//              idle      the loop does not wait: fewer threads may suffice, and the loop gets the cores
//              deeper    the loop waits now and then although threads have no room for another batch
//   trial    measures with them, then keeps or reverts them
//
// If the results are equal, fewer threads are used. A failed trial is repeated only after a pause, which doubles with
// each failure until the loop or the loader changes. In a steady state, there are a few changes per minute at first,
// and later a few changes in several minutes.

#include <cstdint>
#include <optional>
#include <string_view>

#include "tune/sample.h"

namespace feedline::tune {

struct Settings {
  int threads = 1;
  int depth = 1;  // batches filled ahead of the loop
  friend bool operator==(const Settings&, const Settings&) = default;
};

struct Bounds {
  Settings least;
  Settings most;    // limits of the CPU and memory budgets
  double cpus = 1;  // that the process may use
};

struct Change {
  Settings from;
  Settings to;
  std::string_view why;  // a literal
};

// Not thread-safe.
class Controller {
 public:
  // Requires: `first` is within the bounds.
  Controller(const Bounds& bounds, const Settings& first);

  const Settings& settings() const { return settings_; }
  // Receives the measurements since the last call, all of which were made after the last change took effect.
  std::optional<Change> step(const Interval& interval);
  // Called if the loop has waited far longer for one batch than ever before: uses all threads.
  std::optional<Change> starved();
  // Limits the number of threads from now on.
  std::optional<Change> limit_threads(int most);

 private:
  enum class Kind : std::uint8_t { kMore, kFewer, kIdle, kDeeper };
  enum class Verdict : std::uint8_t { kUnknown, kKeep, kRefuse };
  struct Trial {
    Kind kind;
    Settings from;
    Sample before;
  };
  // When the next trial of a kind starts, and how large its step is.
  struct Prospect {
    double left = 0;   // intervals until it may be tried
    double pause = 0;  // after the next failure
    int step = 1;      // threads
  };

  void forget();
  bool has_changed(const Interval& interval);
  std::optional<Change> choose();
  std::optional<Change> judge();
  Verdict verdict(const Trial& trial) const;
  Verdict compare(double gain, double error, double needed) const;
  bool fewer_may_do() const;
  void postpone(Kind kind);
  std::optional<Change> attempt(Kind kind, Settings to, std::string_view why);
  Change change(Settings to, std::string_view why);
  Prospect& prospect(Kind kind) { return prospects_[static_cast<int>(kind)]; }

  Bounds bounds_;
  Settings settings_;
  std::optional<Trial> trial_;
  Sample measured_;        // with settings_
  double best_rate_ = 0;   // since the last surprise, while the loop waited
  int surprises_ = 0;      // consecutive intervals that do not fit the measurements
  double settling_ = 0;    // batches that were filled before the last change
  bool is_fresh_ = false;  // the last change is less than an interval ago
  Prospect prospects_[4];
};

}  // namespace feedline::tune
