// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tracks the latency and throughput of a host, and computes when the next request is allowed. This code only does
// arithmetic on times that the caller has measured.

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace feedline::storage {

struct LinkSpeed {
  double latency_s = 0;    // from a request to the first byte of its response
  double bytes_per_s = 0;  // of one response
};

// A moving average in which each new response has a weight of one eighth. Not thread-safe.
class SpeedEstimate {
 public:
  // Adds a response with data. seconds: the time that the transfer of its body took.
  void add(double latency_s, std::uint64_t bytes, double seconds);
  LinkSpeed speed() const;  // 0 if there are none

 private:
  double latency_s_ = 0;
  double bytes_ = 0, seconds_ = 0;  // of bodies; older ones weigh less
};

// Decides when a request takes so long that a second one is worthwhile, and whether the budget permits it. Not
// thread-safe.
class HedgePolicy {
 public:
  void began();                     // counts a request, which adds to the budget for hedged requests
  void answered(double latency_s);  // time to the first byte of the response, or until the request was abandoned
  // Returns the 99th percentile of latency over the last 512 responses; nullopt if there are too few.
  std::optional<double> late_after_s() const { return late_after_s_; }
  bool may_spend();  // consumes the budget of one hedged request, if available

 private:
  std::vector<double> latencies_;  // the latest ones, in a ring
  std::uint64_t answers_ = 0;
  std::optional<double> late_after_s_;
  double earned_ = 0;
};

// A rate limit: at most 1 + (t + 0.01) times the rate in any period of t seconds. The 10 ms compensate for late
// wake-ups. Not thread-safe.
class RequestPace {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RequestPace(std::uint64_t per_second) : per_second_(per_second) {}  // 0: unlimited

  Clock::time_point next() const;  // earliest time of the next request
  void made(Clock::time_point now);

 private:
  const std::uint64_t per_second_;
  Clock::time_point even_;  // when the next request would be due at an even rate
};

}  // namespace feedline::storage
