// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/read_depth.h"

#include <algorithm>

namespace feedline::pipeline {
namespace {

// The measuring period: long enough to measure a rate, and short enough to reach any depth within the first second.
constexpr std::uint64_t kPeriodNs = 20'000'000;
constexpr std::uint64_t kTakenInPeriod = 16;
// A change of the depth affects the rate only after one latency.
constexpr std::uint64_t kLatenciesInPeriod = 2;
constexpr int kPeriodsBetweenTrials = 32;
constexpr double kWorthMore = 1.1;

}  // namespace

ReadDepth::ReadDepth(std::uint64_t least, std::uint64_t most, Start start)
    : least_(std::min(least, most)), most_(most), reads_(least_), grows_(start == Start::kWithAnswers) {}

void ReadDepth::completed(std::uint64_t latency_ns) {
  shortest_ns_ = shortest_ns_ == 0 ? latency_ns : std::min(shortest_ns_, latency_ns);
  if (grows_ && latency_ns <= 2 * shortest_ns_) reads_ = std::min(reads_ + 1, most_);
  ++completed_;
  latency_sum_ns_ += latency_ns;
  lowest_in_period_ns_ = lowest_in_period_ns_ == 0 ? latency_ns : std::min(lowest_in_period_ns_, latency_ns);
}

void ReadDepth::taken(std::uint64_t now_ns, bool waited) {
  waited_ = waited_ || waited;
  if (period_began_ns_ == 0) {
    period_began_ns_ = now_ns;
    return;
  }
  ++taken_;
  const std::uint64_t period_ns = now_ns - period_began_ns_;
  if (taken_ < kTakenInPeriod || completed_ == 0) return;
  if (period_ns < std::max(kPeriodNs, kLatenciesInPeriod * latency_sum_ns_ / completed_)) return;
  decide(period_ns);
  period_began_ns_ = now_ns;
  taken_ = completed_ = latency_sum_ns_ = lowest_in_period_ns_ = 0;
  waited_ = false;
}

void ReadDepth::decide(std::uint64_t period_ns) {
  grows_ = grows_ && waited_;
  try_more(static_cast<double>(taken_) / static_cast<double>(period_ns));
  lowest_ns_ = lowest_ns_ == 0 ? lowest_in_period_ns_ : std::min(lowest_ns_, lowest_in_period_ns_);
  latency_ns_ = std::min(latency_sum_ns_ / completed_, 2 * lowest_ns_);
  const std::uint64_t wanted = 2 * taken_ * latency_ns_ / period_ns + 1;
  reads_ = std::clamp(std::min(wanted, 2 * reads_), grows_ ? reads_ : least_, most_);
}

void ReadDepth::try_more(double rate) {
  if (lowest_before_ns_ == 0) {
    if (++periods_ < kPeriodsBetweenTrials) return;
  } else if (rate < kWorthMore * rate_before_) {
    lowest_ns_ = std::min(lowest_ns_, lowest_before_ns_);
    lowest_before_ns_ = 0;
    return;
  }
  periods_ = 0;
  rate_before_ = rate;
  lowest_before_ns_ = lowest_ns_;
  lowest_ns_ += lowest_ns_ / 2;
}

}  // namespace feedline::pipeline
