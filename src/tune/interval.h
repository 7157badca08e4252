// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is measured of a loader at work, cut into intervals: the input of Controller.

#include <cstdint>

namespace feedline::tune {

// What happened while the training loop took some batches. Seconds of threads are summed over them.
struct Interval {
  double seconds = 0;
  double batches = 0;        // handed over
  double waited_s = 0;       // by the training loop, for batches that were not ready
  double idle_s = 0;         // of the loader's threads: no row to fill, or no room for another batch
  double reading_s = 0;      // of the loader's threads: getting stored bytes
  double workers_cpu_s = 0;  // CPU time of the loader's threads
  double process_cpu_s = 0;  // of the whole process, those included
  double throttled_s = 0;    // that the group's CPU quota kept it from running; 0 too where nobody tells
};

// Cuts the time into intervals of at least 0.2 s and 4 batches. Both ends are hand-overs, so that the rate of an
// interval is exact however long a batch takes; shorter ones would mostly measure when threads happen to be scheduled.
//
// A pause of the loop (validation, a checkpoint, the border of an epoch) says nothing about the loader: the interval
// that it falls into is dropped. Not thread-safe.
class IntervalMeter {
 public:
  enum class Taken : std::uint8_t {
    kBegan,   // an interval begins here: the time to read counters
    kGoesOn,  //
    kFull,    // it is complete, and the next one begins
  };
  // A batch was handed over at `now_ns`, for which the loop had waited so long.
  Taken delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  // What is not about the loader follows, such as the border of an epoch: the next hand-over begins an interval.
  void interrupt() { last_ns_ = 0; }
  // After kFull: seconds, batches and waited_s.
  const Interval& interval() const { return full_; }
  // From hand-over to hand-over, of late; 0: not known yet.
  double step_s() const { return step_s_; }

 private:
  bool is_pause(double own_s);

  std::uint64_t last_ns_ = 0;  // the hand-over before; 0: none
  Interval running_;
  Interval full_;
  double own_s_ = 0;   // of the loop between two batches, smoothed
  double step_s_ = 0;  // the same with the wait
  int pauses_ = 0;     // since there was an interval without
  bool has_pause_ = false;
};

}  // namespace feedline::tune
