// SPDX-License-Identifier: Apache-2.0
#include "pipeline/settings_in_use.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "pipeline/thread_placement.h"

namespace feedline::pipeline {

SettingsInUse::SettingsInUse(const PipelinePlan& plan, AdaptationMode mode)
    : adaptation_(Adaptation::make(plan, mode)),
      threads_(plan.options.num_workers),
      short_rows_(plan.short_rows),
      wanted_(static_cast<std::size_t>(plan.options.num_workers)),
      slots_(plan.slots) {}

void SettingsInUse::add_worker() {
  clockid_t cpu_clock{};
  if (adaptation_ && ::pthread_getcpuclockid(::pthread_self(), &cpu_clock) == 0) adaptation_->add_worker(cpu_clock);
}

void SettingsInUse::begin_epoch() {
  if (adaptation_) adaptation_->interrupt();
}

void SettingsInUse::use() {
  const tune::Settings settings = adaptation_->settings();
  changes_ = adaptation_->changes();
  wanted_ = static_cast<std::size_t>(settings.threads);
  slots_ = static_cast<std::uint64_t>(settings.depth);
}

bool SettingsInUse::delivered(std::uint64_t now_ns, std::uint64_t waited_ns,
                              std::span<const telemetry::ThreadCounters> threads) {
  if (!adaptation_ || !adaptation_->delivered(now_ns, waited_ns, idle_, threads)) return false;
  use();
  return true;
}

bool SettingsInUse::waits(std::uint64_t now_ns, std::uint64_t waited_ns) {
  if (!adaptation_ || !adaptation_->waits(now_ns, waited_ns)) return false;
  use();
  return true;
}

bool SettingsInUse::leave_a_cpu() {
  if (std::exchange(leaves_a_cpu_, true) || !adaptation_) return false;
  if (!adaptation_->limit_threads(std::max(std::min(share_of_cpus() - 1, threads_), 1))) return false;
  use();
  return true;
}

std::optional<ControllerStats> SettingsInUse::stats(std::uint64_t first_ns) const {
  if (!adaptation_) return std::nullopt;
  return adaptation_->stats(first_ns);
}

}  // namespace feedline::pipeline
