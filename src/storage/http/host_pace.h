// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is known of one host: how fast it answers, and when it may be asked again. Arithmetic over times that the caller
// has measured.

#include <chrono>
#include <cstdint>

namespace feedline::storage {

struct LinkSpeed {
  double latency_s = 0;    // from a request to the first byte of its answer
  double bytes_per_s = 0;  // of one answer
};

// As it was of late: an answer counts an eighth of all before it. Not thread-safe.
class SpeedEstimate {
 public:
  // An answer that was data. seconds: of its body.
  void add(double latency_s, std::uint64_t bytes, double seconds);
  LinkSpeed speed() const;  // 0 where nothing was seen

 private:
  double latency_s_ = 0;
  double bytes_ = 0, seconds_ = 0;  // of bodies, the older the less
};

// No more requests than so many a second: in any time of t seconds 1 + (t + 0.01) times as many. Those 10 ms make up
// for a caller who wakes late. Not thread-safe.
class RequestPace {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RequestPace(std::uint64_t per_second) : per_second_(per_second) {}  // 0: any number

  Clock::time_point next() const;  // not before
  void made(Clock::time_point now);

 private:
  const std::uint64_t per_second_;
  Clock::time_point even_;  // when the next one would be due if all had come evenly
};

}  // namespace feedline::storage
