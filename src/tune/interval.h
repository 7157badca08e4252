// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measurements of a running loader, divided into intervals: the input of Controller.

#include <cstdint>

namespace feedline::tune {

// Measurements while the training loop took several batches. Thread times are sums over threads, in seconds.
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

// Divides time into intervals of at least 0.2 s and 4 batches. Both ends are deliveries, so an interval's rate is exact
// however long a batch takes; shorter intervals would mostly measure thread scheduling.
//
// A pause of the loop (validation, a checkpoint, an epoch boundary) says nothing about the loader: its interval is
// dropped. Not thread-safe.
class IntervalMeter {
 public:
  enum class Taken : std::uint8_t {
    kBegan,   // an interval begins: read the counters
    kGoesOn,  //
    kFull,    // it is complete, and the next one begins
  };
  // Records the delivery of a batch at `now_ns`, for which the loop waited `waited_ns`.
  Taken delivered(std::uint64_t now_ns, std::uint64_t waited_ns);
  // Call before a pause unrelated to the loader, such as an epoch boundary: the next delivery begins an interval.
  void interrupt() { last_ns_ = 0; }
  // After kFull: seconds, batches and waited_s.
  const Interval& interval() const { return full_; }
  // Recent time between deliveries; 0 if unknown.
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
