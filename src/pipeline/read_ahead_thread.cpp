// SPDX-License-Identifier: Apache-2.0
// The thread of a ReadAhead: what it fetches next, and what becomes of what has come.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/read_ahead.h"

namespace feedline::pipeline {
namespace {

constexpr int kNearInARow = 256;
constexpr int kFarWeighs = 16;  // as many near ones as a far one undoes

}  // namespace

void ReadAhead::run() {
  auto queue = storage::make_fetch_queue(
      format_->storage(), mode_ == ReadAheadMode::kThreads ? storage::QueueKind::kThreads : storage::QueueKind::kBest);
  {
    const std::lock_guard lock(mutex_);
    queue_ = std::move(queue);
  }
  serve();
}

// No memory, or a broken promise: the threads read by themselves again.
void ReadAhead::give_up() {
  const std::lock_guard lock(mutex_);
  is_broken_ = true;
  is_far_.store(false, std::memory_order_relaxed);
  // reads may be under way into these
  for (auto& entry : entries_) static_cast<void>(entry.release());
  entries_.clear();
  static_cast<void>(queue_.release());
  is_asleep_ = false;
  finished_cv_.notify_all();
}

void ReadAhead::serve() {
  using Clock = storage::FetchQueue::Clock;
  std::vector<storage::Fetch*> finished;
  std::unique_lock lock(mutex_);
  while (true) {
    top_up(lock);
    if (stopping_ && under_way_ == 0) return;
    is_asleep_ = !stopping_;
    lock.unlock();
    for (storage::Fetch* fetch = queue_->finished(Clock::now() + std::chrono::hours(1)); fetch != nullptr;
         fetch = queue_->finished(Clock::time_point{}))
      finished.push_back(fetch);
    lock.lock();
    is_asleep_ = false;
    for (const storage::Fetch* fetch : finished) completed(*fetch);
    finished.clear();
    if (waiting_ > 0) finished_cv_.notify_all();
  }
}

std::size_t ReadAhead::room() const {
  const std::uint64_t most = depth_.reads();
  if (entries_.size() >= most ||
      held_bytes_ + mean_bytes_ > plan_->read_ahead_bytes + (spare_.empty() ? 0 : mean_bytes_))
    return 0;
  return most - entries_.size();
}

void ReadAhead::top_up(std::unique_lock<std::mutex>& lock) {
  while (!stopping_ && is_far_.load(std::memory_order_relaxed) && room() > 0) {
    const auto sample = next_sample();
    if (!sample) return;
    start(lock, *sample);
  }
}

void ReadAhead::start(std::unique_lock<std::mutex>& lock, std::uint64_t sample) {
  std::unique_ptr<Entry> made;
  if (spare_.empty()) {
    made = std::make_unique<Entry>();
  } else {
    made = std::move(spare_.back());
    spare_.pop_back();
    held_bytes_ -= made->held_bytes;
  }
  Entry& entry = *made;
  entry.sample = sample;
  entry.number = numbers_++;
  entry.held_bytes = std::max<std::uint64_t>(entry.fetch.buffer.capacity(), mean_bytes_);
  entry.started_ns = base::now_ns();
  held_bytes_ += entry.held_bytes;
  entries_.push_back(std::move(made));
  ++under_way_;
  most_under_way_ = std::max(most_under_way_, under_way_);
  lock.unlock();
  // what cannot be fetched is read, or refused, when a thread comes for it; opening a shard may take its time here
  auto piece = format_->piece(sample);
  const bool is_fetched = piece && *piece;
  if (is_fetched) {
    entry.fetch.piece = std::move(**piece);
    entry.fetch.most_bytes = plan_->read_ahead_bytes;  // a larger one is read by the thread that comes for it
    queue_->start(entry.fetch);
  }
  lock.lock();
  if (is_fetched) return;
  entry.fetch.bytes = storage_error("not fetched ahead", 0);
  completed(entry.fetch);
  finished_cv_.notify_all();
}

// nullopt: all that was given is under way.
std::optional<std::uint64_t> ReadAhead::next_given() {
  if (next_.batch < given_.first) next_ = {.batch = given_.first, .is_given = true};
  for (; next_.batch - given_.first < given_.samples.size(); ++next_.batch, next_.row = 0) {
    const auto& samples = given_.samples[next_.batch - given_.first];
    if (next_.row < samples.size()) return samples[next_.row++];
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ReadAhead::next_sample() {
  if (next_.is_given) return next_given();
  while (next_.plan) {
    const plan::Plan& plan = *next_.plan;
    if (next_.batch < plan.batches()) {
      if (next_.row < plan.rows(next_.batch))
        return plan.at(next_.batch * plan_->options.batch_size + next_.row++).sample;
      ++next_.batch;
      next_.row = 0;
    } else {
      if (!goes_on_ || next_.is_next_epoch) break;
      next_ = {
          next_.epoch + 1, std::make_shared<const plan::Plan>(whole_epoch(*plan_, next_.epoch + 1)), 0, 0, true, false};
    }
  }
  return std::nullopt;
}

void ReadAhead::completed(const storage::Fetch& fetch) {
  Entry& entry = **std::ranges::find_if(entries_, [&](const auto& e) { return &e->fetch == &fetch; });
  entry.is_finished = true;
  --under_way_;
  held_bytes_ -= entry.held_bytes;
  entry.held_bytes = entry.fetch.buffer.capacity();
  held_bytes_ += entry.held_bytes;
  if (fetch.bytes) mean_bytes_ += (fetch.bytes->size() + 1) / 16 - mean_bytes_ / 16;
  if (!fetch.was_near && fetch.bytes) depth_.completed(base::now_ns() - entry.started_ns);
  near_ = fetch.was_near ? near_ + 1 : std::max(near_ - kFarWeighs, 0);
  if (entry.is_abandoned) put_away(entry);
  if (near_ >= kNearInARow && mode_ == ReadAheadMode::kAuto) go_near();
}

}  // namespace feedline::pipeline
