// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_scheduler.h"

#include <algorithm>
#include <utility>

#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {
namespace {

// If this many consecutive fetches were served from memory, the storage is treated as near.
constexpr int kNearInARow = 256;
constexpr int kFarWeighs = 16;  // one fetch from storage offsets this many from memory

std::uint64_t slack_of(const PipelinePlan& plan) { return 4 * static_cast<std::uint64_t>(plan.threads); }

}  // namespace

FetchScheduler::FetchScheduler(const PipelinePlan& plan, std::size_t parts, bool turns_near, bool joins,
                               telemetry::HeldBytes& held)
    : parts_(parts),
      turns_near_(turns_near),
      order_(plan, slack_of(plan)),
      pool_(slack_of(plan), plan.read_ahead_bytes, parts, joins, held) {}

void FetchScheduler::wake(After& after) {
  if (std::exchange(is_asleep_, false)) after.sleeping = queue_;
}

void FetchScheduler::do_after(After& after) {
  if (after.sleeping != nullptr) after.sleeping->wake();
  for (const auto& waiter : after.finished) waiter->tell();
  after = {};
}

// ---- the pipeline's owner ----

void FetchScheduler::begin(bool goes_on, std::uint64_t epoch) {
  After after;
  {
    const base::BriefLock lock(mutex_);
    if (order_.begin(goes_on, after.past, epoch)) pool_.abandon_all(after.unused);
  }
  do_after(after);
}

void FetchScheduler::give(std::span<const GivenSample> samples, std::uint64_t oldest) {
  std::vector<GivenSample> batch(samples.begin(), samples.end());
  After after;
  {
    const base::BriefLock lock(mutex_);
    order_.give(std::move(batch), oldest);
    wake(after);
  }
  do_after(after);
}

void FetchScheduler::stop() {
  After after;
  {
    const base::BriefLock lock(mutex_);
    stopping_ = true;
    wake(after);
  }
  do_after(after);
}

// ---- reader threads ----

std::optional<std::size_t> FetchScheduler::take(const PlanRow& row, std::uint64_t sample,
                                                const std::shared_ptr<FetchWaiter>& waiter, FetchTable::Parts& parts,
                                                std::shared_ptr<PartRead>& part_read, const base::SampleKey* key) {
  After after;
  std::optional<std::size_t> used;
  base::BriefLock lock(mutex_);
  Entry* const entry = pool_.claim(sample, key);
  if (entry == nullptr) {
    if (order_.missed(row, after.past)) {
      pool_.abandon_all(after.unused);
      wake(after);
    }
    lock.unlock();
    do_after(after);
    return used;
  }
  order_.found();
  if (!entry->is_finished && !is_broken_) {
    entry->waiter = waiter;
    lock.unlock();
    waiter->wait();
    lock.lock();
  }
  if (!entry->is_finished) return used;
  used = entry->used;
  pool_.hand_over(entry->parts, *used);
  std::swap(parts, entry->parts);
  part_read = std::move(entry->part_read);
  pool_.taken(*entry, after.unused);
  if (pool_.has_much_room()) wake(after);
  lock.unlock();
  do_after(after);
  return used;
}

bool FetchScheduler::turn_far() {
  const base::BriefLock lock(mutex_);
  if (is_broken_ || stopping_ || is_starting_) return false;
  near_ = 0;
  has_turned_near_.store(false, std::memory_order_relaxed);
  if (!has_started_) {
    is_starting_ = true;
    return true;
  }
  pool_.keep_spare();
  is_far_.store(true, std::memory_order_relaxed);
  return false;
}

void FetchScheduler::started(bool is_running) {
  After after;
  {
    const base::BriefLock lock(mutex_);
    is_starting_ = false;
    has_started_ = is_running;
    if (!is_running || is_broken_) return;  // readers continue on their own
    pool_.keep_spare();
    is_far_.store(true, std::memory_order_relaxed);
    wake(after);
  }
  do_after(after);
}

void FetchScheduler::go_near(After& after) {
  is_far_.store(false, std::memory_order_relaxed);
  has_turned_near_.store(true, std::memory_order_relaxed);
  order_.forget(after.past);
  pool_.keep_none(after.unused);
}

// ---- the fetching thread ----

void FetchScheduler::serve_by(storage::FetchQueue& queue) {
  const base::BriefLock lock(mutex_);
  queue_ = &queue;
}

FetchScheduler::Step FetchScheduler::next(Entries& fresh) {
  using Kind = Step::Kind;
  const base::BriefLock lock(mutex_);
  if (stopping_ && pool_.under_way() > 0) return {Kind::kCancel};
  if (stopping_) {
    queue_ = nullptr;  // destroyed with the thread
    return {Kind::kEnd};
  }
  if (is_far() && pool_.may_begin()) {
    if (order_.needs_next_epoch()) return {Kind::kPlanEpoch, nullptr, order_.ended()};
    if (!pool_.has_spare() && fresh.empty()) return {Kind::kMakeEntry};
    if (const auto row = order_.next_row()) return {Kind::kFetch, &pool_.begin(*row, fresh)};
    if (order_.needs_next_epoch()) return {Kind::kPlanEpoch, nullptr, order_.ended()};
  }
  is_asleep_ = true;
  return {Kind::kWait};
}

void FetchScheduler::finished(std::span<storage::Fetch* const> fetches) {
  After after;
  after.finished.reserve(fetches.size());
  {
    const base::BriefLock lock(mutex_);
    is_asleep_ = false;
    for (storage::Fetch* fetch : fetches) {
      Entry& entry = *static_cast<FetchTable::Part&>(*fetch).entry;
      if (--entry.under_way == 0) finish(entry, after);
    }
  }
  do_after(after);
}

void FetchScheduler::finished(Entry& entry) {
  After after;
  after.finished.reserve(1);
  {
    const base::BriefLock lock(mutex_);
    finish(entry, after);
  }
  do_after(after);
}

void FetchScheduler::finish(Entry& entry, After& after) {
  if (entry.waiter) after.finished.push_back(std::move(entry.waiter));
  const FetchTable::Outcome outcome = entry.outcome();
  near_ = outcome.was_near ? near_ + 1 : std::max(near_ - kFarWeighs, 0);
  pool_.finish(entry, outcome, after.unused);
  if (near_ >= kNearInARow && turns_near_) go_near(after);
}

void FetchScheduler::follow(const FetchOrder::PlannedEpoch& ended, FetchOrder::PlannedEpoch& following) {
  const base::BriefLock lock(mutex_);
  order_.follow(ended, following);
}

std::vector<storage::Fetch*> FetchScheduler::under_way() {
  std::vector<storage::Fetch*> fetches;
  base::BriefLock lock(mutex_);
  const std::size_t most = pool_.size() * parts_;  // other threads only remove entries
  lock.unlock();
  fetches.reserve(most);
  lock.lock();
  for (Entry& entry : pool_.all())
    if (!entry.is_finished)
      for (FetchTable::Part& part : std::span(entry.parts).first(entry.used)) fetches.push_back(&part);
  return fetches;
}

void FetchScheduler::break_off() {
  const base::BriefLock lock(mutex_);
  is_broken_ = true;
  is_far_.store(false, std::memory_order_relaxed);
  for (Entry& entry : pool_.all())
    if (entry.waiter) entry.waiter->tell();
  pool_.leave_behind();
  queue_ = nullptr;
  is_asleep_ = false;
}

// ---- any thread ----

std::uint64_t FetchScheduler::held_bytes() const {
  const base::BriefLock lock(mutex_);
  return pool_.held_bytes();
}

FetchScheduler::Report FetchScheduler::report() const {
  const base::BriefLock lock(mutex_);
  return {pool_.mean_bytes(), pool_.most_under_way(), pool_.latency_ns(), queue_ ? queue_->name() : "threads"};
}

}  // namespace feedline::pipeline
