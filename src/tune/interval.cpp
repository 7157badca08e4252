// SPDX-License-Identifier: Apache-2.0
#include "tune/interval.h"

namespace feedline::tune {
namespace {

constexpr double kLeastSeconds = 0.2;
constexpr double kLeastBatches = 4;
constexpr double kSmoothing = 1.0 / 8;
// A loop that does not take a batch for more than ten steps, and for longer than a scheduling delay, is not training.
constexpr double kPauseInSteps = 10;
constexpr double kLeastPause = 0.05;
// If pauses are more frequent, they are a normal part of the loop.
constexpr int kMostPauses = 3;

void smooth(double& mean, double value) { mean = mean == 0 ? value : mean + (value - mean) * kSmoothing; }

}  // namespace

bool IntervalMeter::is_pause(double own_s) {
  const bool is_long = own_s_ > 0 && own_s > kLeastPause && own_s > kPauseInSteps * own_s_;
  smooth(own_s_, own_s);
  has_pause_ |= is_long;
  return is_long && ++pauses_ <= kMostPauses;
}

IntervalMeter::Taken IntervalMeter::delivered(std::uint64_t now_ns, std::uint64_t waited_ns) {
  constexpr double kNs = 1e-9;
  const bool first = last_ns_ == 0;
  const double step_s = first ? 0 : static_cast<double>(now_ns - last_ns_) * kNs;
  const double waited_s = static_cast<double>(waited_ns) * kNs;
  last_ns_ = now_ns;
  if (first || is_pause(step_s - waited_s)) {
    running_ = {};
    return Taken::kBegan;
  }
  smooth(step_s_, step_s);
  running_.seconds += step_s;
  running_.waited_s += waited_s;
  running_.batches += 1;
  if (running_.seconds < kLeastSeconds || running_.batches < kLeastBatches) return Taken::kGoesOn;
  full_ = running_;
  running_ = {};
  if (!has_pause_) pauses_ = 0;
  has_pause_ = false;
  return Taken::kFull;
}

}  // namespace feedline::tune
