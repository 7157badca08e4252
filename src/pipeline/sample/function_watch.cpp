// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample/function_watch.h"

#include <unistd.h>

namespace feedline::pipeline {

bool FunctionWatch::enter() {
  const std::lock_guard lock(mutex_);
  is_inside_ = !is_closed_;
  return is_inside_;
}

void FunctionWatch::leave(std::uint64_t run_ns, std::uint64_t waited_ns) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  run_ns_.fetch_add(run_ns, std::memory_order_relaxed);
  waited_ns_.fetch_add(waited_ns, std::memory_order_relaxed);
  bool is_given_up = false;
  {
    const std::lock_guard lock(mutex_);
    is_inside_ = false;
    is_given_up = is_given_up_;
  }
  while (is_given_up) ::pause();
  returned_.notify_all();
}

void FunctionWatch::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

bool FunctionWatch::give_up(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  returned_.wait_until(lock, until, [this] { return !is_inside_; });
  is_given_up_ = is_inside_;
  return is_given_up_;
}

}  // namespace feedline::pipeline
