// SPDX-License-Identifier: Apache-2.0
#include "storage/thread_transport.h"

#include <iterator>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "storage/read_speed.h"
#include "storage/storage.h"

namespace feedline::storage {

ThreadTransport::ThreadTransport(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}

ThreadTransport::~ThreadTransport() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_cv_.notify_all();
  threads_.clear();  // joins
}

void ThreadTransport::start(Read& read) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&read);
    if (waiting_.size() <= idle_ || hands_.size() == kMostThreads) {
      fail_unserved();
      work_cv_.notify_one();
      return;
    }
    hands_.emplace_back();
  }
  Reads& hand = hands_.back();  // only this thread adds any
  auto thread = base::Thread::start(
      "feedline-read-" + std::to_string(threads_.size()), [this, &hand] { work(hand); },
      [this, &hand](Error error) { lose(hand, std::move(error)); });
  if (thread) {
    threads_.push_back(std::move(*thread));
    return;
  }
  const std::lock_guard lock(mutex_);
  hands_.pop_back();
  if (hands_.size() > lost_) return;  // the existing threads will run it
  carry_out(read);
  finished_.splice(finished_.end(), waiting_, std::prev(waiting_.end()));
}

Read* ThreadTransport::finished(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  finished_cv_.wait_until(lock, until, [this] { return !finished_.empty() || woken_; });
  if (finished_.empty()) {
    woken_ = false;
    return nullptr;
  }
  Read* read = finished_.front();
  finished_.pop_front();
  return read;
}

void ThreadTransport::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  finished_cv_.notify_one();
}

void ThreadTransport::carry_out(Read& read) const {
  const auto done = base::guarded([&]() -> Result<void> {
    read_now(*storage_, read);
    return {};
  });
  if (!done) read.bytes = std::unexpected(done.error());
}

void ThreadTransport::work(Reads& hand) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    work_cv_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (waiting_.empty()) return;
    hand.splice(hand.end(), waiting_, waiting_.begin());
    lock.unlock();
    Read& read = *hand.front();
    const std::uint64_t started = base::now_ns();
    carry_out(read);
    read.was_near = !is_slow(base::now_ns() - started, read.bytes ? read.bytes->size() : 0);
    lock.lock();
    finished_.splice(finished_.end(), hand);
    finished_cv_.notify_one();
  }
}

// Handles a thread that ends because a backend's library threw something other than a std::exception.
void ThreadTransport::lose(Reads& hand, Error error) {
  const std::lock_guard lock(mutex_);
  ++lost_;
  lost_by_ = std::move(error);
  for (Read* read : hand) read->bytes = std::unexpected(lost_by_);
  finished_.splice(finished_.end(), hand);
  fail_unserved();
  work_cv_.notify_one();  // it may have consumed a read's notification
  finished_cv_.notify_one();
}

// Called if no thread is left for the queued reads.
void ThreadTransport::fail_unserved() {
  if (hands_.size() > lost_ || waiting_.empty()) return;
  for (Read* read : waiting_) read->bytes = std::unexpected(lost_by_);
  finished_.splice(finished_.end(), waiting_);
  finished_cv_.notify_one();
}

}  // namespace feedline::storage
