// SPDX-License-Identifier: Apache-2.0
#include "tune/sample.h"

#include <algorithm>
#include <cmath>

namespace feedline::tune {

void Sample::add(const Interval& interval) {
  intervals_ += 1;
  sums_.seconds += interval.seconds;
  sums_.batches += interval.batches;
  sums_.waited_s += interval.waited_s;
  sums_.idle_s += interval.idle_s;
  sums_.reading_s += interval.reading_s;
  sums_.workers_cpu_s += interval.workers_cpu_s;
  sums_.process_cpu_s += interval.process_cpu_s;
  sums_.throttled_s += interval.throttled_s;
  steps_s_.add(interval.seconds / interval.batches);
  waits_.add(interval.waited_s / interval.seconds);
}

void Sample::fade() {
  for (double* sum : {&intervals_, &sums_.seconds, &sums_.batches, &sums_.waited_s, &sums_.idle_s, &sums_.reading_s,
                      &sums_.workers_cpu_s, &sums_.process_cpu_s, &sums_.throttled_s, &steps_s_.sum, &steps_s_.squares,
                      &waits_.sum, &waits_.squares})
    *sum /= 2;
}

void Sample::Moments::add(double value) {
  sum += value;
  squares += value * value;
}

double Sample::Moments::error(double count) const {
  if (count < 2) return 0;
  const double mean = sum / count;
  return std::sqrt(std::max(squares / count - mean * mean, 0.0) / (count - 1));
}

double Sample::rate_error() const {
  return intervals_ > 0 ? steps_s_.error(intervals_) / (steps_s_.sum / intervals_) : 0;
}

double Sample::wait_error() const { return waits_.error(intervals_); }

}  // namespace feedline::tune
