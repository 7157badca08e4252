// SPDX-License-Identifier: Apache-2.0
#include "storage/http/host_pace.h"

#include <algorithm>

namespace feedline::storage {
namespace {

constexpr double kOld = 7.0 / 8;               // weight of earlier responses after a new one
constexpr std::uint64_t kTelling = 64 * 1024;  // a shorter body is already buffered when it is first read
constexpr double kShortest = 1e-6;
constexpr std::size_t kRemembered = 512, kLeastSeen = 64, kOnTime = 99;  // responses; per cent
constexpr std::uint64_t kBetween = 16;                                   // responses between two computations of the
                                                                         // percentile
constexpr double kEarned = 0.03;   // hedged requests per request: more would burden a host that is slow for all
constexpr double kMostEarned = 4;  // at once
constexpr auto kVariableSize = std::chrono::milliseconds(10);

}  // namespace

void SpeedEstimate::add(double latency_s, std::uint64_t bytes, double seconds) {
  latency_s_ = latency_s_ == 0 ? latency_s : kOld * latency_s_ + (1 - kOld) * latency_s;
  if (bytes < kTelling) return;
  bytes_ = kOld * bytes_ + static_cast<double>(bytes);
  seconds_ = kOld * seconds_ + std::max(seconds, kShortest);
}

LinkSpeed SpeedEstimate::speed() const { return {latency_s_, seconds_ > 0 ? bytes_ / seconds_ : 0}; }

void HedgePolicy::began() { earned_ = std::min(earned_ + kEarned, kMostEarned); }

void HedgePolicy::answered(double latency_s) {
  if (latencies_.size() < kRemembered)
    latencies_.push_back(latency_s);
  else
    latencies_[answers_ % kRemembered] = latency_s;
  ++answers_;
  if (latencies_.size() < kLeastSeen || answers_ % kBetween != 0) return;
  std::vector<double> sorted = latencies_;
  const auto late = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * kOnTime / 100);
  std::ranges::nth_element(sorted, late);
  late_after_s_ = *late;
}

bool HedgePolicy::may_spend() {
  if (earned_ < 1) return false;
  earned_ -= 1;
  return true;
}

RequestPace::Clock::time_point RequestPace::next() const {
  return per_second_ == 0 || even_ == Clock::time_point{} ? Clock::time_point{} : even_ - kVariableSize;
}

void RequestPace::made(Clock::time_point now) {
  if (per_second_ == 0) return;
  even_ = std::max(even_, now) + std::chrono::nanoseconds(1'000'000'000 / per_second_);
}

}  // namespace feedline::storage
