// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tune/interval.h"

namespace feedline::tune {

// The means, with standard errors, of intervals measured with the same settings. A plain value.
class Sample {
 public:
  void add(const Interval& interval);
  // Halves the weight of older intervals.
  void fade();

  double intervals() const { return intervals_; }
  double rate() const { return sums_.seconds > 0 ? sums_.batches / sums_.seconds : 0; }  // batches per second
  double wait_share() const { return share(sums_.waited_s); }                            // of the loop's time
  // Time averages of the sums over threads.
  double idle_threads() const { return share(sums_.idle_s); }
  double reading_threads() const { return share(sums_.reading_s); }
  double worker_cpus() const { return share(sums_.workers_cpu_s); }
  double process_cpus() const { return share(sums_.process_cpu_s); }
  double throttled_share() const { return share(sums_.throttled_s); }
  // Returns the standard error; the standard error of the rate is relative to the rate. Returns 0 for fewer than two
  // intervals.
  double rate_error() const;
  double wait_error() const;

 private:
  double share(double sum) const { return sums_.seconds > 0 ? sum / sums_.seconds : 0; }

  double intervals_ = 0;
  Interval sums_;
  struct Moments {
    double sum = 0, squares = 0;
    void add(double value);
    double error(double count) const;
  };
  Moments steps_s_;  // seconds per batch of each interval
  Moments waits_;    // share of the loop's time, per interval
};

}  // namespace feedline::tune
