// SPDX-License-Identifier: Apache-2.0
// The lock, and the worker's side of it. The consumer's is in exchange_consumer.cpp.
#include "pipeline/exchange.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace feedline::pipeline {

using telemetry::Stage;

Exchange::Exchange(const Parts& parts)
    : parts_(parts),
      consumer_(parts.counters.back()[static_cast<std::size_t>(Stage::kConsumer)]),
      memory_(parts.recipe, parts.plan, parts.device->allocator()),
      settings_(parts.plan),
      delivery_(parts.policy, parts.device) {}

void Exchange::update_recall() { recall_ = stopping_ || failure_ || epochs_.has_refill(); }

// Threads that filled a row, or waited for one, look again whether they are wanted: all of them, as one that parks must
// not be the one that was told of work.
void Exchange::wake_all_workers() {
  work_cv_.notify_all();
  parked_cv_.notify_all();
}

void Exchange::open_slot() {
  auto lease = memory_.take();
  if (!lease) {
    if (epochs_.drop_following()) return;  // nobody has asked for it yet
    failure_ = std::move(lease).error();
    update_recall();
    ready_cv_.notify_all();
    return;
  }
  memory_.lay_out(epochs_.open(std::move(*lease)));
  held_peak_ = std::max(held_peak_, epochs_.open_slots() * parts_.plan.batch_bytes);
  work_cv_.notify_all();
}

void Exchange::wait_for_work(std::unique_lock<std::mutex>& lock, std::size_t worker) {
  telemetry::StageCounters& stage = parts_.counters[worker][static_cast<std::size_t>(Stage::kBatch)];
  const bool blocked = epochs_.can_open();  // only room is missing
  const std::uint64_t started = base::now_ns();
  settings_.idle().begin(started);
  work_cv_.wait(lock);
  const std::uint64_t ended = base::now_ns();
  settings_.idle().end(started, ended);
  if (blocked)
    stage.add_blocked(ended - started);
  else
    stage.add_starved(ended - started);
}

bool Exchange::next(std::size_t worker, Task& task, bool finished) {
  std::unique_lock lock(mutex_);
  if (finished) settle(task);
  task = {};  // whoever waits holds no batch
  while (!stopping_) {
    if (!settings_.is_wanted(worker)) {
      parked_cv_.wait(lock);
      continue;
    }
    if (!failure_) {
      if (auto taken = epochs_.take_task()) {
        task = std::move(*taken);
        update_recall();
        memory_.reuse_pages(*task.ticket.slot);
        return true;
      }
      if (epochs_.can_open() && epochs_.open_slots() < settings_.slots()) {
        open_slot();
        continue;
      }
    }
    wait_for_work(lock, worker);
  }
  return false;
}

void Exchange::settle(const Task& task) {
  Epoch* epoch = epochs_.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, and the slot with it
  epoch->settle(*task.ticket.slot);
  ready_cv_.notify_one();
  if (!epoch->has_refill()) return;
  update_recall();
  work_cv_.notify_one();
}

void Exchange::note(const Task& task, std::span<RowFiller::Noted> rows) {
  if (rows.empty()) return;
  const std::lock_guard lock(mutex_);
  Epoch* epoch = epochs_.epoch_of(task);
  if (epoch == nullptr) return;  // it was abandoned, and the slot with it
  for (auto& [row, outcome] : rows) epoch->note(*task.ticket.slot, row, std::move(outcome));
}

void Exchange::break_off(Error error) {
  const std::lock_guard lock(mutex_);
  broken_ = std::move(error);
  ready_cv_.notify_all();
}

}  // namespace feedline::pipeline
