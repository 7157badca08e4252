// SPDX-License-Identifier: Apache-2.0
#include "storage/thread_queue.h"

#include <iterator>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
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
    if (waiting_.size() <= idle_ || hands_.size() == kMostThreads) {
      fail_unserved();
      work_cv_.notify_one();
      return;
    }
    hands_.emplace_back();
  }
  Fetches& hand = hands_.back();  // only this thread adds any
  auto thread = base::Thread::start(
      "feedline-read-" + std::to_string(threads_.size()), [this, &hand] { work(hand); },
      [this, &hand](Error error) { lose(hand, std::move(error)); });
  if (thread) {
    threads_.push_back(std::move(*thread));
    return;
  }
  const std::lock_guard lock(mutex_);
  hands_.pop_back();
  if (hands_.size() > lost_) return;  // those that are there will come to it
  read(fetch);
  finished_.splice(finished_.end(), waiting_, std::prev(waiting_.end()));
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

void ThreadQueue::read(Fetch& fetch) const {
  const auto done = base::guarded([&]() -> Result<void> {
    fetch_now(*storage_, fetch);
    return {};
  });
  if (!done) fetch.bytes = std::unexpected(done.error());
}

void ThreadQueue::work(Fetches& hand) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_cv_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    hand.splice(hand.end(), waiting_, waiting_.begin());
    lock.unlock();
    Fetch& fetch = *hand.front();
    const std::uint64_t started = base::now_ns();
    read(fetch);
    fetch.was_near = !is_slow(base::now_ns() - started, fetch.bytes ? fetch.bytes->size() : 0);
    lock.lock();
    finished_.splice(finished_.end(), hand);
    finished_cv_.notify_one();
  }
}

// The thread of `hand` ends by something that is no std::exception, as what a storage's library throws may be.
void ThreadQueue::lose(Fetches& hand, Error error) {
  const std::lock_guard lock(mutex_);
  ++lost_;
  lost_by_ = std::move(error);
  for (Fetch* fetch : hand) fetch->bytes = std::unexpected(lost_by_);
  finished_.splice(finished_.end(), hand);
  fail_unserved();
  work_cv_.notify_one();  // it may have been the one that was told of a fetch
  finished_cv_.notify_one();
}

// Nobody would come for what waits.
void ThreadQueue::fail_unserved() {
  if (hands_.size() > lost_ || waiting_.empty()) return;
  for (Fetch* fetch : waiting_) fetch->bytes = std::unexpected(lost_by_);
  finished_.splice(finished_.end(), waiting_);
  finished_cv_.notify_one();
}

}  // namespace feedline::storage
