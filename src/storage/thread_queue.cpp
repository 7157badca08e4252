// SPDX-License-Identifier: Apache-2.0
#include "storage/thread_queue.h"

#include <string>
#include <utility>

#include "base/clock.h"
#include "storage/read_speed.h"
#include "storage/storage.h"

namespace feedline::storage {

ThreadQueue::ThreadQueue(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}

ThreadQueue::~ThreadQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_cv_.notify_all();
  threads_.clear();  // joins
}

void ThreadQueue::start(Fetch& fetch) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&fetch);
    if (waiting_.size() <= idle_ || threads_.size() == kMostThreads) {
      work_cv_.notify_one();
      return;
    }
  }
  auto thread = base::Thread::start("feedline-read-" + std::to_string(threads_.size()), [this] { work(); });
  if (thread) {
    threads_.push_back(std::move(*thread));
    return;
  }
  if (!threads_.empty()) return;  // those that are there will come to it
  const std::lock_guard lock(mutex_);
  waiting_.pop_back();
  fetch_now(*storage_, fetch);
  finished_.push_back(&fetch);
}

Fetch* ThreadQueue::finished(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  finished_cv_.wait_until(lock, until, [this] { return !finished_.empty() || woken_; });
  if (finished_.empty()) {
    woken_ = false;
    return nullptr;
  }
  Fetch* fetch = finished_.front();
  finished_.pop_front();
  return fetch;
}

void ThreadQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  finished_cv_.notify_one();
}

void ThreadQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_cv_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    Fetch* fetch = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    const std::uint64_t started = base::now_ns();
    fetch_now(*storage_, *fetch);
    fetch->was_near = !is_slow(base::now_ns() - started, fetch->bytes ? fetch->bytes->size() : 0);
    lock.lock();
    finished_.push_back(fetch);
    finished_cv_.notify_one();
  }
}

}  // namespace feedline::storage
