// SPDX-License-Identifier: Apache-2.0
#include "tune/controller.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace feedline::tune {
namespace {

// Numbers of intervals, which usually take 0.2 s.
constexpr double kFew = 5;    // before a trial is started or accepted
constexpr double kMost = 12;  // for one trial; after that older ones count half
constexpr double kLeast = 3;  // before a trial is judged, unless it is a disaster

// Fractions of the training loop's time. Between the two limits, the controller makes no trials; the gap provides
// hysteresis.
constexpr double kWaits = 0.03;
constexpr double kNeverWaits = 0.005;
constexpr double kMayWait = 0.015;  // acceptable with fewer threads, if the loop did not wait before

// Fractions of the rate. More threads must increase the rate by at least a quarter of their relative increase.
constexpr double kLeastGain = 0.02, kMostGain = 0.05, kGainOfStep = 0.25;
constexpr double kMayLose = 0.01;       // with fewer threads, per step,
constexpr double kMayLoseInAll = 0.03;  // and in total
constexpr double kDisaster = 0.15;      // ends a trial after one interval
constexpr double kLeastError = 0.01;    // of a comparison: a few intervals may agree by chance
constexpr double kSurprise = 0.25;
constexpr double kRare = 4;  // an outlier deviates by more standard deviations than this

constexpr double kIdle = 0.2;        // of the threads' time: more threads would not help
constexpr double kReads = 0.4;       // of the time of working threads: storage may be the limit
constexpr double kOthers = 0.25;     // CPUs used by the training loop that are worth a thread
constexpr double kSaturated = 0.85;  // of the CPUs
constexpr double kThrottled = 0.02;
constexpr double kReserve = 1.25;  // threads retained per busy thread

// The pause after a failed trial, in intervals: from 2 s to 80 s.
constexpr double kFirstPause = 10, kLongestPause = 400;
// If the loop waits, the number of threads is not reduced in the first seconds, because the cause is not certain yet.
constexpr double kPatience = 25;

constexpr int kAllSteps = 1 << 20;

}  // namespace

Controller::Controller(const Bounds& bounds, const Settings& first) : bounds_(bounds), settings_(first) {
  FEEDLINE_CHECK(bounds.least.threads <= first.threads && first.threads <= bounds.most.threads);
  FEEDLINE_CHECK(bounds.least.depth <= first.depth && first.depth <= bounds.most.depth);
  forget();
}

// Called if conditions have changed: settings that failed before may work now.
void Controller::forget() {
  measured_ = {};
  best_rate_ = 0;
  surprises_ = 0;
  for (Prospect& prospect : prospects_) prospect = {0, kFirstPause, 1};
  prospect(Kind::kIdle).step = kAllSteps;
  prospect(Kind::kFewer).left = prospect(Kind::kFewer).pause = kPatience;
}

std::optional<Change> Controller::step(const Interval& interval) {
  for (Prospect& prospect : prospects_) prospect.left = std::max(prospect.left - 1, 0.0);
  const bool settled = !is_fresh_ && settling_ <= 0;
  is_fresh_ = false;
  settling_ -= interval.batches;
  if (!settled) return std::nullopt;
  if (!trial_ && has_changed(interval)) forget();
  measured_.add(interval);
  if (trial_) return judge();
  const auto change = choose();
  if (measured_.intervals() >= kMost) measured_.fade();
  return change;
}

// Returns whether, in two consecutive intervals, the rate was far from the mean, or the loop waited although it did not
// wait before (or the reverse).
bool Controller::has_changed(const Interval& interval) {
  if (measured_.intervals() < kFew) return false;
  const double waited = interval.waited_s / interval.seconds;
  const double rate = interval.batches / interval.seconds;
  const double off = std::abs(rate / measured_.rate() - 1);
  const double spread = kRare * std::sqrt(measured_.intervals());  // of single intervals, in standard errors
  const double waits_more = waited - measured_.wait_share();
  const bool other_wait = std::abs(waits_more) > std::max(3 * kWaits, spread * measured_.wait_error()) &&
                          (waits_more > 0 ? measured_.wait_share() < kWaits : waited < kNeverWaits);
  const bool other_rate = off > std::max(kSurprise, spread * measured_.rate_error());
  surprises_ = other_rate || other_wait ? surprises_ + 1 : 0;
  return surprises_ >= 2;
}

// Returns whether the loop might be as fast with fewer threads, although it waits. This is not the case if threads
// decode all the time and the rest of the process does not need the CPUs. CPU time that is below working time is not a
// reason to use fewer threads: other programs may be using the CPUs, and would use them even more if the loader had
// fewer threads.
bool Controller::fewer_may_do() const {
  const double at_work = settings_.threads - measured_.idle_threads();
  const double others = measured_.process_cpus() - measured_.worker_cpus();
  const bool threads_read = measured_.reading_threads() > kReads * at_work;
  const bool loop_computes = others > kOthers && measured_.process_cpus() > kSaturated * bounds_.cpus;
  return threads_read || loop_computes || measured_.throttled_share() > kThrottled ||
         measured_.idle_threads() > kIdle * settings_.threads;
}

std::optional<Change> Controller::choose() {
  if (measured_.intervals() < kFew) return std::nullopt;
  const auto due = [this](Kind kind) { return prospect(kind).left == 0; };
  const Settings now = settings_;
  const bool idle = measured_.idle_threads() > kIdle * now.threads;
  if (measured_.wait_share() - measured_.wait_error() > kWaits) {
    best_rate_ = std::max(best_rate_, measured_.rate());
    if (idle && now.depth < bounds_.most.depth && due(Kind::kDeeper))
      return attempt(Kind::kDeeper, {now.threads, 2 * now.depth},
                     "the loop sometimes waits: trying deeper prefetching");
    if (!idle && now.threads < bounds_.most.threads && due(Kind::kMore))
      return attempt(Kind::kMore, {now.threads + prospect(Kind::kMore).step, now.depth},
                     "the loop waits: trying more threads");
    if (now.threads > bounds_.least.threads && due(Kind::kFewer) && fewer_may_do())
      return attempt(Kind::kFewer, {now.threads - std::max(1, now.threads / 8), now.depth},
                     "threads wait for storage, or the loop needs the CPUs: trying fewer threads");
    return std::nullopt;
  }
  if (measured_.wait_share() + measured_.wait_error() > kNeverWaits || now.threads == bounds_.least.threads ||
      !due(Kind::kIdle))
    return std::nullopt;
  const double busy = now.threads - measured_.idle_threads();
  const int enough = std::max(static_cast<int>(std::ceil(busy * kReserve)), now.threads - prospect(Kind::kIdle).step);
  return attempt(Kind::kIdle, {std::min(enough, now.threads - 1), now.depth},
                 "the loop never waits: trying fewer threads");
}

std::optional<Change> Controller::attempt(Kind kind, Settings to, std::string_view why) {
  to.threads = std::clamp(to.threads, bounds_.least.threads, bounds_.most.threads);
  to.depth = std::clamp(to.depth, bounds_.least.depth, bounds_.most.depth);
  trial_ = Trial{kind, settings_, measured_};
  measured_ = {};
  return change(to, why);
}

Change Controller::change(Settings to, std::string_view why) {
  const Change made{settings_, to, why};
  settling_ = std::max(settings_.depth, to.depth);
  is_fresh_ = true;
  settings_ = to;
  return made;
}

Controller::Verdict Controller::compare(double gain, double error, double needed) const {
  if (gain < needed - kDisaster) return Verdict::kRefuse;
  if (measured_.intervals() < kLeast) return Verdict::kUnknown;
  if (gain - error > needed) return Verdict::kKeep;
  if (gain + error < needed) return Verdict::kRefuse;
  if (measured_.intervals() < kMost) return Verdict::kUnknown;
  return gain > needed ? Verdict::kKeep : Verdict::kRefuse;
}

Controller::Verdict Controller::verdict(const Trial& trial) const {
  const double gain = measured_.rate() / trial.before.rate() - 1;
  // twice the standard error of a difference: exceeded one time in twenty
  const double error = std::max(2 * std::hypot(measured_.rate_error(), trial.before.rate_error()), kLeastError);
  const double waits = measured_.wait_share();
  switch (trial.kind) {
    case Kind::kMore: {
      const double step = static_cast<double>(settings_.threads - trial.from.threads) / trial.from.threads;
      return compare(gain, error, std::clamp(kGainOfStep * step, kLeastGain, kMostGain));
    }
    case Kind::kFewer:
      if (measured_.rate() * (1 + error) < (1 - kMayLoseInAll) * best_rate_ && measured_.intervals() >= kLeast)
        return Verdict::kRefuse;
      return compare(gain, error, -kMayLose);
    case Kind::kDeeper:
      return waits < trial.before.wait_share() / 2 && measured_.intervals() >= kFew ? Verdict::kKeep
                                                                                    : compare(gain, error, kLeastGain);
    case Kind::kIdle:
      // without waits the rate is the loop's own; a loop that now waits may still be faster, because it has more CPU
      // time
      if (waits > kDisaster && gain < 0) return Verdict::kRefuse;
      if (measured_.intervals() < kFew) return Verdict::kUnknown;
      if (waits + measured_.wait_error() < kMayWait) return Verdict::kKeep;
      if (measured_.intervals() < kMost) return compare(gain, error, kLeastGain);
      return waits < kMayWait ? Verdict::kKeep : Verdict::kRefuse;
  }
  return Verdict::kRefuse;
}

void Controller::postpone(Kind kind) {
  Prospect& tried = prospect(kind);
  tried.left = tried.pause;
  tried.pause = std::min(2 * tried.pause, kLongestPause);
}

std::optional<Change> Controller::judge() {
  const Trial trial = *trial_;
  const Verdict found = verdict(trial);
  if (found == Verdict::kUnknown) return std::nullopt;
  trial_.reset();
  Prospect& tried = prospect(trial.kind);
  if (found == Verdict::kKeep) {
    if (trial.kind == Kind::kMore) tried.step = std::min(2 * tried.step, bounds_.most.threads);
    // do not retry soon what was just given up without loss
    if (trial.kind == Kind::kFewer) prospect(Kind::kMore).left = prospect(Kind::kMore).pause;
    if (trial.kind == Kind::kMore) {
      postpone(Kind::kIdle);
      prospect(Kind::kFewer).left = prospect(Kind::kFewer).pause;
    }
    return std::nullopt;
  }
  postpone(trial.kind);
  const int step = std::abs(trial.from.threads - settings_.threads);
  tried.step = std::max(step / 2, 1);
  measured_ = trial.before;
  return change(trial.from, trial.kind == Kind::kIdle ? "no: the loop waited" : "no: no gain");
}

std::optional<Change> Controller::starved() {
  if (settings_.threads == bounds_.most.threads) return std::nullopt;
  trial_.reset();
  forget();
  return change({bounds_.most.threads, settings_.depth}, "no batch for a long time: using all threads");
}

std::optional<Change> Controller::limit_threads(int most) {
  bounds_.most.threads = std::max(most, bounds_.least.threads);
  if (settings_.threads <= bounds_.most.threads) {
    if (trial_) trial_->from.threads = std::min(trial_->from.threads, bounds_.most.threads);
    return std::nullopt;
  }
  trial_.reset();
  forget();
  return change({bounds_.most.threads, settings_.depth}, "a CPU is left to the thread that feeds the GPU");
}

}  // namespace feedline::tune
