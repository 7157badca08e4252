// SPDX-License-Identifier: Apache-2.0
// The lock and the worker threads' side. batch_scheduler_consumer.cpp has the consumer's side.
#include "pipeline/batch_scheduler.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

// The influence of a batch with unusually large variable-size fields decays with each later batch: after forty batches,
// a twelfth of it remains.
constexpr std::uint64_t kForgets = 16;
// The number of open batches while the size of variable-size fields is unknown: the default, one being filled and one
// started.
constexpr std::uint64_t kUnmeasured = 2;

std::shared_ptr<const Error> cancelled(std::string what) {
  return std::make_shared<const Error>(Error{ErrorCode::kCancelled, std::move(what), {}, 0});
}

}  // namespace

BatchScheduler::BatchScheduler(const Parts& parts)
    : parts_(parts),
      closed_error_(cancelled("the loader is closed")),
      interrupted_error_(cancelled("interrupted")),
      consumer_(parts.counters.back()[static_cast<std::size_t>(Stage::kConsumer)]),
      memory_(parts.recipe, parts.plan, parts.device),
      limits_(parts.plan),
      delivery_(parts.policy, parts.device->location()),
      variable_bytes_(parts.plan.variable_bytes),
      variable_is_guess_(parts.plan.variable_is_guess),
      held_(parts.ahead ? parts.ahead->held() : own_held_),
      held_bytes_(held_) {}

void BatchScheduler::update_recall() { recall_ = stopping_ || failure_ || epochs_.has_refill(); }

// Called without the lock: a thread that is woken under the lock would block again, and could preempt the holder.
void BatchScheduler::wake(Wakes& wakes) {
  if (wakes.consumer) ready_cv_.notify_one();
  if (wakes.all_workers)
    work_cv_.notify_all();
  else if (wakes.one_worker)
    work_cv_.notify_one();
  if (wakes.parked) parked_cv_.notify_all();
  wakes = {};
}

// The size of variable-size fields is known only after filling, so the next batch reserves as much memory as the
// largest recent batch used. There is always room for one batch.
bool BatchScheduler::has_room() const {
  const std::uint64_t open = epochs_.open_slots() + leaving_;
  if (open >= limits_.slots()) return false;
  if (variable_bytes_ == 0 || open == 0) return true;
  if (variable_is_guess_ && open >= kUnmeasured) return false;
  return (open + 1) * (parts_.plan.batch_bytes + variable_bytes_) <= parts_.plan.bytes_for_batches();
}

void BatchScheduler::note_held() {
  const std::uint64_t variable = memory_.held_by_items() + epochs_.variable_bytes() + leaving_variable_bytes_;
  held_bytes_.set((epochs_.open_slots() + leaving_) * parts_.plan.batch_bytes + variable);
}

// Only one worker claims a batch at a time: all threads share the claimed batch, which is the oldest with rows left.
void BatchScheduler::open_slot(base::BriefLock& lock, Wakes& wakes) {
  claiming_ = true;
  const std::uint64_t run = epochs_.claiming_run();
  lock.unlock();
  wake(wakes);
  auto taken = memory_.take();
  auto no_memory = taken ? nullptr : std::make_shared<const Error>(std::move(taken).error());
  lock.lock();
  claiming_ = false;
  wakes.all_workers = true;  // wake the waiting threads, whatever the outcome
  std::shared_ptr<Slot> slot = taken ? std::move(*taken) : nullptr;
  if (stopping_ || run != epochs_.claiming_run() || !has_room()) return let_go(lock, std::move(slot), wakes);
  if (no_memory) {
    if (auto following = epochs_.drop_following()) return let_go(lock, std::move(*following), wakes);
    failure_ = std::move(no_memory);  // but not for an epoch that was not requested yet
    update_recall();
    wakes.consumer = true;
    return;
  }
  epochs_.claim(slot);
  note_held();
  lock.unlock();
  slot->assign_samples();
  memory_.lay_out(*slot);
  slot->tickets.resume(0);
  slot.reset();  // may be the last reference: the epoch may have been abandoned
  lock.lock();
}

void BatchScheduler::let_go(base::BriefLock& lock, std::shared_ptr<Slot> slot, Wakes& wakes) {
  ++leaving_;
  lock.unlock();
  slot.reset();
  lock.lock();
  --leaving_;
  note_held();
  wakes.all_workers = true;
}

void BatchScheduler::let_go(base::BriefLock& lock, DroppedEpochs dropped, Wakes& wakes) {
  const std::size_t slots = dropped.open_slots();
  const std::uint64_t variable_bytes = dropped.variable_bytes();
  leaving_ += slots;
  leaving_variable_bytes_ += variable_bytes;
  lock.unlock();
  dropped = {};
  lock.lock();
  leaving_ -= slots;
  leaving_variable_bytes_ -= variable_bytes;
  note_held();
  wakes.all_workers = true;
}

void BatchScheduler::wait_for_work(base::BriefLock& lock, std::size_t worker) {
  telemetry::StageCounters& stage = parts_.counters[worker][static_cast<std::size_t>(Stage::kBatch)];
  const bool blocked = epochs_.can_open() && !has_room();  // only room is missing
  const std::uint64_t started = base::now_ns();
  limits_.idle().begin(started);
  lock.wait(work_cv_);
  const std::uint64_t ended = base::now_ns();
  limits_.idle().end(started, ended);
  if (blocked)
    stage.add_blocked(ended - started);
  else
    stage.add_starved(ended - started);
}

bool BatchScheduler::next(std::size_t worker, Task& task, bool finished) {
  Task done = std::exchange(task, {});
  Wakes wakes;
  base::BriefLock lock(mutex_);
  if (finished) settle(lock, worker, done, wakes);
  while (!stopping_) {
    const bool is_wanted = limits_.is_wanted(worker);
    if (is_wanted && !failure_) {
      if (auto taken = epochs_.take_task()) {
        task = std::move(*taken);
        update_recall();
        lock.unlock();
        wake(wakes);
        return true;
      }
      if (!claiming_ && !epochs_.rows_follow() && epochs_.can_open() && has_room()) {
        open_slot(lock, wakes);
        continue;
      }
    }
    if (wakes.any() || done.ticket.slot) {  // before waiting, wake the others and release the batch
      lock.unlock();
      wake(wakes);
      done = {};
      lock.lock();
    } else if (is_wanted) {
      wait_for_work(lock, worker);
    } else {
      lock.wait(parked_cv_);
    }
  }
  lock.unlock();
  wake(wakes);
  return false;
}

void BatchScheduler::settle(base::BriefLock& lock, std::size_t worker, const Task& task, Wakes& wakes) {
  Epoch* epoch = epochs_.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, with the slot
  epoch->settle(*task.ticket.slot);
  wakes.consumer = true;
  if (epoch->has_refill()) {
    update_recall();
    wakes.one_worker = true;
  }
  if (auto slots = epoch->take_final()) make_ready(lock, worker, task, std::move(slots), wakes);
}

// Prepares the slots of the task's epoch in order, because the oldest is delivered first.
void BatchScheduler::make_ready(base::BriefLock& lock, std::size_t worker, const Task& task,
                                std::shared_ptr<Slot> slots, Wakes& wakes) {
  telemetry::StageCounters& stage = parts_.counters[worker][static_cast<std::size_t>(Stage::kBatch)];
  while (slots) {
    lock.unlock();
    wake(wakes);
    const std::uint64_t started = base::now_ns();
    const std::uint64_t took = memory_.make_ready(*slots, task.epoch);
    stage.add_busy(base::now_ns() - started);
    stage.add_bytes(slots->prepared->composed.bytes());
    std::shared_ptr<Slot> next = std::move(slots->prepared->next_final);
    lock.lock();
    variable_bytes_ = variable_is_guess_ ? took : std::max(took, variable_bytes_ - variable_bytes_ / kForgets);
    variable_is_guess_ = false;
    if (Epoch* epoch = epochs_.epoch_of(task)) {
      epoch->note_ready(*slots);
      wakes.consumer = true;
    } else {  // abandoned in the meantime: this may be the last reference
      lock.unlock();
      slots.reset();
      lock.lock();
    }
    note_held();
    slots = std::move(next);
  }
}

void BatchScheduler::reuse_pages(Slot& slot) {
  if (!memory_.has_spare(slot) || !memory_.reuse_pages(slot)) return;
  // a thread that found no row before this has checked under the lock and is asleep by now
  { const base::BriefLock lock(mutex_); }
  work_cv_.notify_all();
}

void BatchScheduler::note(const Task& task, std::span<RowFiller::Noted> rows) {
  if (rows.empty()) return;
  const base::BriefLock lock(mutex_);
  Epoch* epoch = epochs_.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, with the slot
  for (auto& [row, outcome] : rows) epoch->note(*task.ticket.slot, row, std::move(outcome));
}

void BatchScheduler::break_off(Error error) {
  auto broken = std::make_shared<const Error>(std::move(error));
  {
    const base::BriefLock lock(mutex_);
    broken_.swap(broken);
  }
  ready_cv_.notify_all();
}

}  // namespace feedline::pipeline
