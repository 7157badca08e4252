// SPDX-License-Identifier: Apache-2.0
#include "pipeline/adaptation.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/cpus.h"
#include "pipeline/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

constexpr std::size_t kKeptChanges = 64;

// A wait like this, eight times what a step takes, is not one that threads more or less explain: take what there is.
constexpr double kStarvedSteps = 8;
constexpr double kStarvedSeconds = 0.5;

std::uint64_t read_clock(clockid_t clock, std::uint64_t otherwise) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return otherwise;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

AdaptationMode adaptation_mode() {
  const char* text = std::getenv("FEEDLINE_CONTROLLER");
  const std::string_view mode = text ? text : "";
  if (mode == "off") return AdaptationMode::kOff;
  if (mode == "random") return AdaptationMode::kRandom;
  return AdaptationMode::kAuto;
}

std::unique_ptr<Adaptation> Adaptation::make(const PipelinePlan& plan, AdaptationMode mode) {
  if (!plan.adapts || mode == AdaptationMode::kOff) return nullptr;
  const int threads = plan.options.num_workers;
  const tune::Settings first{threads, static_cast<int>(plan.slots)};
  const tune::Bounds bounds{
      {1, first.depth}, {threads, static_cast<int>(plan.most_slots)}, static_cast<double>(base::usable_cpus())};
  return std::unique_ptr<Adaptation>(new Adaptation(bounds, first, mode, base::cgroup_limit("cpu.max").has_value()));
}

Adaptation::Adaptation(const tune::Bounds& bounds, const tune::Settings& first, AdaptationMode mode, bool has_quota)
    : mode_(mode), has_quota_(has_quota), bounds_(bounds), settings_(first), controller_(bounds, first) {}

Adaptation::Counters Adaptation::read(std::uint64_t now_ns, const IdleTime& idle,
                                      std::span<const telemetry::ThreadCounters> threads) {
  Counters now;
  now.idle_ns = idle.total_ns(now_ns);
  telemetry::StageTotals reading;
  for (const auto& thread : threads) thread[static_cast<std::size_t>(telemetry::Stage::kStorage)].add_to(reading);
  now.reading_ns = reading.busy_ns;
  for (Worker& worker : workers_) now.workers_ns += worker.cpu_ns = read_clock(worker.clock, worker.cpu_ns);
  now.process_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID, begun_.process_ns);
  if (has_quota_) now.throttled_ns = base::throttled_ns().value_or(0);
  return now;
}

bool Adaptation::delivered(std::uint64_t now_ns, std::uint64_t waited_ns, const IdleTime& idle,
                           std::span<const telemetry::ThreadCounters> threads) {
  if (mode_ == AdaptationMode::kRandom) return draw(now_ns);
  const auto taken = meter_.delivered(now_ns, waited_ns);
  if (taken == tune::IntervalMeter::Taken::kGoesOn) return false;
  const Counters now = read(now_ns, idle, threads);
  const Counters then = begun_;
  begun_ = now;
  if (taken == tune::IntervalMeter::Taken::kBegan) return false;
  constexpr double kNs = 1e-9;
  tune::Interval interval = meter_.interval();
  interval.idle_s = static_cast<double>(now.idle_ns - then.idle_ns) * kNs;
  interval.reading_s = static_cast<double>(now.reading_ns - then.reading_ns) * kNs;
  interval.workers_cpu_s = static_cast<double>(now.workers_ns - then.workers_ns) * kNs;
  interval.process_cpu_s = static_cast<double>(now.process_ns - then.process_ns) * kNs;
  interval.throttled_s = static_cast<double>(now.throttled_ns - then.throttled_ns) * kNs;
  return note(now_ns, controller_.step(interval));
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
  ++changes_;
  made_.push_back({now_ns, *change});
  if (made_.size() > kKeptChanges) made_.pop_front();
  return true;
}

bool Adaptation::draw(std::uint64_t now_ns) {
  const auto between = [this](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); };
  const tune::Settings next{between(1, bounds_.most.threads), between(1, bounds_.most.depth)};
  return note(now_ns, tune::Change{settings_, next, "at random"});
}

ControllerStats Adaptation::stats(std::uint64_t first_ns) const {
  ControllerStats stats;
  stats.threads = settings_.threads;
  stats.limit = bounds_.most.threads;
  stats.batches_ahead = static_cast<std::uint64_t>(settings_.depth);
  stats.changed = changes_;
  for (const Made& made : made_)
    stats.changes.push_back({made.at_ns > first_ns ? static_cast<double>(made.at_ns - first_ns) * 1e-9 : 0.0,
                             made.change.from.threads, made.change.to.threads,
                             static_cast<std::uint64_t>(made.change.from.depth),
                             static_cast<std::uint64_t>(made.change.to.depth), std::string(made.change.why)});
  return stats;
}

}  // namespace feedline::pipeline
