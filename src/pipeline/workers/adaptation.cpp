// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/adaptation.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/cpus.h"
#include "base/test_conditions.h"
#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

// If the training loop waits for eight step times or more, the number of threads is not the reason, so all of them are
// used.
constexpr double kStarvedSteps = 8;
constexpr double kStarvedSeconds = 0.5;

}  // namespace

AdaptationMode adaptation_mode() {
  const char* text = std::getenv("FEEDLINE_CONTROLLER");
  if (text != nullptr && std::string_view(text) == "off") return AdaptationMode::kOff;
  return base::test_conditions().random_threads ? AdaptationMode::kRandom : AdaptationMode::kAuto;
}

std::unique_ptr<Adaptation> Adaptation::make(const PipelinePlan& plan, AdaptationMode mode) {
  if (!plan.adapts || mode == AdaptationMode::kOff) return nullptr;
  const int threads = plan.threads;
  const tune::Settings first{threads, static_cast<int>(plan.slots)};
  const tune::Bounds bounds{
      {1, first.depth}, {threads, static_cast<int>(plan.most_slots)}, static_cast<double>(base::usable_cpus())};
  return std::unique_ptr<Adaptation>(new Adaptation(bounds, first, mode));
}

Adaptation::Adaptation(const tune::Bounds& bounds, const tune::Settings& first, AdaptationMode mode)
    : mode_(mode), bounds_(bounds), settings_(first), controller_(bounds, first) {}

Adaptation::Next Adaptation::delivered(std::uint64_t now_ns, std::uint64_t waited_ns, const IdleTime& idle) {
  if (mode_ == AdaptationMode::kRandom) return draw(now_ns) ? Next::kChanged : Next::kNothing;
  const auto taken = meter_.delivered(now_ns, waited_ns);
  if (taken == tune::IntervalMeter::Taken::kGoesOn) return Next::kNothing;
  is_full_ = taken == tune::IntervalMeter::Taken::kFull;
  ended_ = {now_ns, idle.total_ns(now_ns), {}};
  return Next::kMeasure;
}

bool Adaptation::measured(const Usage& now) {
  const Moment then = std::exchange(begun_, Moment{ended_.at_ns, ended_.idle_ns, now});
  if (!is_full_) return false;
  constexpr double kNs = 1e-9;
  tune::Interval interval = meter_.interval();
  interval.idle_s = static_cast<double>(ended_.idle_ns - then.idle_ns) * kNs;
  interval.reading_s = static_cast<double>(now.reading_ns - then.usage.reading_ns) * kNs;
  interval.workers_cpu_s = static_cast<double>(now.workers_ns - then.usage.workers_ns) * kNs;
  interval.process_cpu_s = static_cast<double>(now.process_ns - then.usage.process_ns) * kNs;
  interval.throttled_s = static_cast<double>(now.throttled_ns - then.usage.throttled_ns) * kNs;
  return note(ended_.at_ns, controller_.step(interval));
}

bool Adaptation::waits(std::uint64_t now_ns, std::uint64_t waited_ns) {
  const double waited_s = static_cast<double>(waited_ns) * 1e-9;
  if (mode_ == AdaptationMode::kRandom || waited_s < std::max(kStarvedSeconds, kStarvedSteps * meter_.step_s()))
    return false;
  return note(now_ns, controller_.starved());
}

bool Adaptation::limit_threads(int most) {
  bounds_.most.threads = std::max(most, 1);
  const auto change = controller_.limit_threads(bounds_.most.threads);
  if (mode_ == AdaptationMode::kRandom) {
    settings_.threads = std::min(settings_.threads, bounds_.most.threads);
    return true;
  }
  return note(0, change);
}

bool Adaptation::note(std::uint64_t now_ns, const std::optional<tune::Change>& change) {
  if (!change) return false;
  settings_ = change->to;
  latest_[changes_++ % latest_.size()] = {now_ns, *change};
  return true;
}

bool Adaptation::draw(std::uint64_t now_ns) {
  const auto between = [this](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); };
  const tune::Settings next{between(1, bounds_.most.threads), between(1, bounds_.most.depth)};
  return note(now_ns, tune::Change{settings_, next, "at random"});
}

ControllerStats Adaptation::Decided::stats(std::uint64_t first_ns) const {
  ControllerStats stats;
  stats.threads = settings.threads;
  stats.limit = limit;
  stats.batches_ahead = static_cast<std::uint64_t>(settings.depth);
  stats.changed = changes;
  for (std::uint64_t c = changes - std::min<std::uint64_t>(changes, latest.size()); c < changes; ++c) {
    const auto& [at_ns, change] = latest[c % latest.size()];
    stats.changes.push_back({at_ns > first_ns ? static_cast<double>(at_ns - first_ns) * 1e-9 : 0.0, change.from.threads,
                             change.to.threads, static_cast<std::uint64_t>(change.from.depth),
                             static_cast<std::uint64_t>(change.to.depth), std::string(change.why)});
  }
  return stats;
}

}  // namespace feedline::pipeline
