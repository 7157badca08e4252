// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides the measurements of a running loader into intervals, which are the input of Controller.

#include <cstdint>

namespace feedline::tune {

// Measurements over a period in which the training loop consumed several batches. Thread times are sums over all
// threads, in seconds.
struct Interval {
  double seconds = 0;
  double batches = 0;        // delivered
  double waited_s = 0;       // by the training loop, for batches that were not ready
  double idle_s = 0;         // of the loader's threads: no row to fill, or no room for another batch
  double reading_s = 0;      // of the loader's threads: reading storage
  double workers_cpu_s = 0;  // CPU time of the loader's threads
  double process_cpu_s = 0;  // of the whole process, including those
  double throttled_s = 0;    // by the cgroup's CPU quota; 0 also if unknown
};

// Divides time into intervals of at least 0.2 s and 4 batches. An interval begins and ends with a delivery, so its rate
// is exact however long a batch takes; shorter intervals would mostly measure thread scheduling.
//
// A pause of the loop (validation, a checkpoint, an epoch boundary) is not caused by the loader, so its interval is
// dropped. Not thread-safe.
class IntervalMeter {
 public:
  enum class Taken : std::uint8_t {
    kBegan,   // an interval begins: read the counters
    kGoesOn,  //
    kFull,    // it is complete, and the next one begins
  };
  // Records that a batch was delivered at `now_ns`, after the loop had waited `waited_ns` for it.
  Taken delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  // Call before a pause that is not caused by the loader, such as an epoch boundary: an interval then begins with the
  // next delivery.
  void interrupt() { last_ns_ = 0; }
  // The members seconds, batches and waited_s are valid after kFull.
  const Interval& interval() const { return full_; }
  // Returns the recent time between deliveries; 0 if unknown.
  double step_s() const { return step_s_; }

 private:
  bool is_pause(double own_s);

  std::uint64_t last_ns_ = 0;  // the previous delivery; 0 if there was none
  Interval running_;
  Interval full_;
  double own_s_ = 0;   // the loop's time between two batches, smoothed
  double step_s_ = 0;  // the same, including the wait
  int pauses_ = 0;     // since the last interval without one
  bool has_pause_ = false;
};

}  // namespace feedline::tune
