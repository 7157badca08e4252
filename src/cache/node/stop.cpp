// SPDX-License-Identifier: Apache-2.0
#include "cache/node/stop.h"

#include <utility>

namespace feedline::cache {

void Stop::stop() {
  is_stopped_ = true;
  const std::lock_guard lock(mutex_);
  if (wake_ != nullptr) (*wake_)();
}

Waking::Waking(Stop* stop, std::function<void()> wake) : stop_(stop), wake_(std::move(wake)) {
  if (stop_ == nullptr) return;
  const std::lock_guard lock(stop_->mutex_);
  stop_->wake_ = &wake_;
}

Waking::~Waking() {
  if (stop_ == nullptr) return;
  const std::lock_guard lock(stop_->mutex_);
  stop_->wake_ = nullptr;
}

}  // namespace feedline::cache
