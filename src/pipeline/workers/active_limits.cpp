// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/active_limits.h"

#include <utility>

namespace feedline::pipeline {

ActiveLimits::ActiveLimits(const PipelinePlan& plan, AdaptationMode mode)
    : adaptation_(Adaptation::make(plan, mode)),
      usage_(adaptation_ ? std::make_unique<ThreadUsage>(static_cast<std::size_t>(plan.threads)) : nullptr),
      threads_with_gpu_(plan.threads_with_gpu),
      short_rows_(plan.short_rows),
      wanted_(static_cast<std::size_t>(plan.threads)),
      slots_(plan.slots) {}

void ActiveLimits::add_worker(std::size_t worker) {
  if (usage_) usage_->add_worker(worker);
}

bool ActiveLimits::begin_epoch(bool feeds_gpu) {
  if (!adaptation_) return false;
  adaptation_->interrupt();
  if (!feeds_gpu || std::exchange(feeds_gpu_, true) || !adaptation_->limit_threads(threads_with_gpu_)) return false;
  use();
  return true;
}

void ActiveLimits::use() {
  const tune::Settings settings = adaptation_->settings();
  changes_ = adaptation_->changes();
  wanted_ = static_cast<std::size_t>(settings.threads);
  slots_ = static_cast<std::uint64_t>(settings.depth);
}

Adaptation::Next ActiveLimits::delivered(std::uint64_t now_ns, std::uint64_t waited_ns) {
  if (!adaptation_) return Adaptation::Next::kNothing;
  const auto next = adaptation_->delivered(now_ns, waited_ns, idle_);
  if (next == Adaptation::Next::kChanged) use();
  return next;
}

bool ActiveLimits::measured(const Usage& now) {
  if (!adaptation_->measured(now)) return false;
  use();
  return true;
}

bool ActiveLimits::waits(std::uint64_t now_ns, std::uint64_t waited_ns) {
  if (!adaptation_ || !adaptation_->waits(now_ns, waited_ns)) return false;
  use();
  return true;
}

std::optional<Adaptation::Decided> ActiveLimits::decided() const {
  if (!adaptation_) return std::nullopt;
  return adaptation_->decided();
}

}  // namespace feedline::pipeline
