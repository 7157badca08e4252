// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many threads fill batches, and how many batches they fill ahead, while the training runs: hill climbing on what
// the loop was given, without a clock, a thread or a look at the machine of its own.
//
//   hold     measures; when there is something to gain, tries other settings:
//              more      the loop waits, and threads are free to start
//              fewer     the loop waits, and the threads wait for storage or take CPUs that the loop needs
//              idle      the loop does not wait: fewer may do, and the loop gets the cores
//              deeper    the loop waits now and then although threads have no room for another batch
//   trial    measures with them, and keeps them or goes back
//
// Fewer threads win a draw. A trial that failed is not repeated for a while, which doubles each time, until the loop or
// the loader changes by itself: in a steady state there are a few changes a minute, and soon a few in several minutes.

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
  Settings most;    // what the CPU and memory budgets allow
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
  // Requires: first lies within the bounds.
  Controller(const Bounds& bounds, const Settings& first);

  const Settings& settings() const { return settings_; }
  // What was measured since the last call, all of it after the last change took place.
  std::optional<Change> step(const Interval& interval);
  // The loop has waited far longer than ever for one batch: all hands.
  std::optional<Change> starved();
  // From now on no more threads than that.
  std::optional<Change> limit_threads(int most);

 private:
  enum class Kind : std::uint8_t { kMore, kFewer, kIdle, kDeeper };
  enum class Verdict : std::uint8_t { kUnknown, kKeep, kRefuse };
  struct Trial {
    Kind kind;
    Settings from;
    Sample before;
  };
  // When a kind of trial is due, and how far it goes.
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
  int surprises_ = 0;      // intervals in a row that do not fit what was measured
  double settling_ = 0;    // batches that were filled before the last change
  bool is_fresh_ = false;  // the last change is less than an interval ago
  Prospect prospects_[4];
};

}  // namespace feedline::tune
