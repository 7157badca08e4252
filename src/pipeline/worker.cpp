// SPDX-License-Identifier: Apache-2.0
#include "pipeline/worker.h"

#include "base/clock.h"

namespace feedline::pipeline {
namespace {

// Returns an exception that a function raised but that does not concern its sample, such as a request to exit the
// program.
const Error* end_of(const Outcome& outcome) {
  if (outcome.failed.empty()) return nullptr;
  const Error& error = outcome.failed.front().sample.error;
  return error.code == ErrorCode::kCancelled && error.raised ? &error : nullptr;
}

}  // namespace

Worker::Worker(std::size_t number, BatchScheduler& scheduler, RowFiller& filler, telemetry::StageCounters& stage,
               Progress& progress)
    : number_(number), scheduler_(scheduler), filler_(filler), stage_(stage), progress_(progress) {}

void Worker::run() {
  scheduler_.add_worker(number_);
  Task task;
  bool finished = false;
  while (scheduler_.next(number_, task, finished)) finished = fill(task);
}

// Fills the rows of the task, and then the remaining rows of its batch. Returns true if the batch has no rows left to
// finish.
bool Worker::fill(Task& task) {
  Ticket& ticket = task.ticket;
  Slot& slot = *ticket.slot;
  const bool was_refill = ticket.is_refill;
  std::uint64_t filled = 0;
  do {
    scheduler_.reuse_pages(slot);
    progress_.row.store(ticket.row, std::memory_order_relaxed);
    progress_.filled.store(filled, std::memory_order_relaxed);
    progress_.slot.store(&slot, std::memory_order_release);
    const auto noted = filler_.fill(ticket, task.epoch, progress_.row);
    for (const RowFiller::Noted& row : noted)
      if (const Error* end = end_of(row.outcome)) scheduler_.break_off(*end);
    scheduler_.note(task, noted);
    filled += ticket.rows;
  } while (!scheduler_.must_return(number_) && ticket.advance());
  const std::uint64_t ended = base::now_ns();
  progress_.slot.store(nullptr, std::memory_order_release);
  const bool finished = slot.tickets.finish(filled);
  // count each batch once, for the thread that finishes it: others only worked on it, and so does a refill, which
  // finishes it again
  if (finished && !was_refill)
    stage_.add_item(base::now_ns() - ended, slot.rows * slot.layout->sample_bytes());
  else
    stage_.add_busy(base::now_ns() - ended);
  return finished;
}

}  // namespace feedline::pipeline
