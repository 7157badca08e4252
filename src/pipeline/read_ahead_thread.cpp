// SPDX-License-Identifier: Apache-2.0
// The thread of a ReadAhead: what it fetches next, and what becomes of what has come.
#include <algorithm>
#include <span>
#include <utility>

#include "base/clock.h"
#include "pipeline/pipeline_plan.h"
#include "pipeline/read_ahead.h"

namespace feedline::pipeline {
namespace {

constexpr int kNearInARow = 256;
constexpr int kFarWeighs = 16;  // as many near ones as a far one undoes

// What became of a sample's parts.
struct Outcome {
  bool is_whole = true;
  bool was_near = true;  // all of them were in memory
  std::uint64_t bytes = 0;
};

Outcome outcome_of(std::span<const FetchTable::Part> parts) {
  Outcome outcome{!parts.empty(), !parts.empty()};
  for (const FetchTable::Part& part : parts) {
    outcome.is_whole = outcome.is_whole && part.bytes;
    outcome.was_near = outcome.was_near && part.was_near;
    if (part.bytes) outcome.bytes += part.bytes->size();
  }
  return outcome;
}

}  // namespace

void ReadAhead::run() {
  auto queue = storage::make_fetch_queue(
      format_->storage(), mode_ == ReadAheadMode::kThreads ? storage::QueueKind::kThreads : storage::QueueKind::kBest);
  {
    const BriefLock lock(mutex_);
    queue_ = std::move(queue);
  }
  serve();
}

// No memory, or a broken promise: the threads read by themselves again. Takes no memory itself.
void ReadAhead::give_up() {
  const BriefLock lock(mutex_);
  is_broken_ = true;
  is_far_.store(false, std::memory_order_relaxed);
  for (auto& entry : entries_.all())
    if (entry.waiter) entry.waiter->tell();
  // reads may be under way into these: nobody gets at them any more, and they stay
  std::swap(entries_, *nothing_);
  static_cast<void>(nothing_.release());
  static_cast<void>(queue_.release());
  is_asleep_ = false;
}

void ReadAhead::serve() {
  using Clock = storage::FetchQueue::Clock;
  std::vector<storage::Fetch*> finished;
  FetchTable::Entries fresh;
  BriefLock lock(mutex_);
  while (true) {
    while (top_up(lock, fresh)) continue;
    if (stopping_) cancel_all(lock);
    if (stopping_ && under_way_ == 0) return;
    is_asleep_ = !stopping_;
    lock.unlock();
    for (storage::Fetch* fetch = queue_->finished(Clock::now() + std::chrono::hours(1)); fetch != nullptr;
         fetch = queue_->finished(Clock::time_point{}))
      finished.push_back(fetch);
    After after;
    after.finished.reserve(finished.size());
    lock.lock();
    is_asleep_ = false;
    for (storage::Fetch* fetch : finished) completed(static_cast<FetchTable::Part&>(*fetch), after);
    lock.unlock();
    do_after(after);
    finished.clear();
    lock.lock();
  }
}

// Only this thread finishes entries, so that they stay where they are without the lock.
void ReadAhead::cancel_all(BriefLock& lock) {
  std::vector<FetchTable::Entry*> under_way;
  const std::size_t most = entries_.size();  // others only take some away
  lock.unlock();
  under_way.reserve(most);
  lock.lock();
  for (auto& entry : entries_.all())
    if (!entry.is_finished) under_way.push_back(&entry);
  lock.unlock();
  for (FetchTable::Entry* entry : under_way)
    for (FetchTable::Part& part : std::span(entry->parts).first(entry->used)) queue_->cancel(part);
  lock.lock();
}

std::size_t ReadAhead::room() const {
  const std::uint64_t most = depth_.reads();
  if (entries_.size() >= most ||
      held_bytes_ + mean_bytes_ > plan_.read_ahead_bytes + (spare_.empty() ? 0 : mean_bytes_))
    return 0;
  return most - entries_.size();
}

// Does one thing towards as many reads as there is room for. fresh: entries without memory of their own, to use where
// none is spare. false: there is nothing to do.
bool ReadAhead::top_up(BriefLock& lock, FetchTable::Entries& fresh) {
  if (stopping_ || !is_far_.load(std::memory_order_relaxed) || room() == 0) return false;
  if (needs_next_epoch()) {
    prepare_next_epoch(lock);
    return true;
  }
  if (spare_.empty() && fresh.empty()) {
    lock.unlock();
    fresh.emplace_back().parts.resize(parts_);
    lock.lock();
    return true;
  }
  const auto sample = next_sample();
  if (!sample) return needs_next_epoch();
  FetchTable::Entries& from = spare_.empty() ? fresh : spare_;
  FetchTable::Entry& entry = from.front();
  held_bytes_ -= entry.held_bytes;
  if (&from == &spare_) spare_bytes_ -= entry.held_bytes;
  entry.sample = *sample;
  entry.number = numbers_++;
  entry.held_bytes = std::max(entry.buffer_bytes(), mean_bytes_);
  entry.started_ns = base::now_ns();
  entry.is_finished = entry.is_abandoned = false;
  held_bytes_ += entry.held_bytes;
  entries_.add(from);
  ++under_way_;
  most_under_way_ = std::max(most_under_way_, under_way_);
  start(lock, entry);
  return true;
}

void ReadAhead::start(BriefLock& lock, FetchTable::Entry& entry) {
  lock.unlock();
  // what cannot be fetched is read, or refused, when a thread comes for it; opening a shard may take its time here
  pieces_.clear();
  if (!format_->find_pieces(entry.sample, pieces_)) pieces_.clear();
  entry.used = entry.under_way = pieces_.size();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    FetchTable::Part& part = entry.parts[i];
    part.entry = &entry;
    part.piece = std::move(pieces_[i]);
    part.bytes = std::span<const std::byte>();
    part.was_near = false;
    part.most_bytes = plan_.read_ahead_bytes;  // a larger one is read by the thread that comes for it
    queue_->start(part);
  }
  After after;
  if (entry.used == 0) after.finished.reserve(1);
  lock.lock();
  if (entry.used > 0) return;
  completed(entry, after);
  lock.unlock();
  do_after(after);
  lock.lock();
}

bool ReadAhead::needs_next_epoch() const {
  return goes_on_ && !next_.is_given && !next_.is_next_epoch && next_.plan && next_.batch >= next_.plan->batches();
}

// Goes on behind the last sample of an epoch, whose successor takes some time to plan.
void ReadAhead::prepare_next_epoch(BriefLock& lock) {
  auto plan = next_.plan;
  const std::uint64_t epoch = next_.epoch + 1;
  lock.unlock();
  Cursor next{epoch, std::make_shared<const plan::Plan>(whole_epoch(plan_, epoch)), 0, 0, true, false};
  lock.lock();
  if (needs_next_epoch() && next_.plan == plan && next_.epoch + 1 == epoch) std::swap(next_, next);
  lock.unlock();
  next = {};
  plan.reset();
  lock.lock();
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
  if (!next_.plan) return std::nullopt;
  const plan::Plan& plan = *next_.plan;
  for (; next_.batch < plan.batches(); ++next_.batch, next_.row = 0)
    if (next_.row < plan.rows(next_.batch)) return plan.at(next_.batch * plan_.batch_size + next_.row++).sample;
  return std::nullopt;
}

void ReadAhead::completed(FetchTable::Part& part, After& after) {
  if (--part.entry->under_way == 0) completed(*part.entry, after);
}

void ReadAhead::completed(FetchTable::Entry& entry, After& after) {
  entry.is_finished = true;
  if (entry.waiter) after.finished.push_back(std::move(entry.waiter));
  --under_way_;
  held_bytes_ -= entry.held_bytes;
  entry.held_bytes = entry.buffer_bytes();
  held_bytes_ += entry.held_bytes;
  const Outcome outcome = outcome_of(std::span(entry.parts).first(entry.used));
  if (outcome.is_whole) mean_bytes_ += (outcome.bytes + 1) / 16 - mean_bytes_ / 16;
  if (!outcome.was_near && outcome.is_whole) depth_.completed(base::now_ns() - entry.started_ns);
  near_ = outcome.was_near ? near_ + 1 : std::max(near_ - kFarWeighs, 0);
  if (entry.is_abandoned) put_away(entry, after);
  if (near_ >= kNearInARow && mode_ == ReadAheadMode::kAuto) go_near(after);
}

}  // namespace feedline::pipeline
