// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_thread.h"

#include <chrono>
#include <span>
#include <utility>

#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

FetchThread::FetchThread(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                         storage::QueueKind kind, FetchScheduler& scheduler)
    : format_(std::move(format)), plan_(plan), kind_(kind), scheduler_(scheduler) {}

bool FetchThread::start() {
  auto thread = base::Thread::start(
      "feedline-ahead", [this] { run(); }, [this](const Error&) { break_off(); });
  if (!thread) return false;
  thread_.emplace(std::move(*thread));
  return true;
}

// Called if memory runs out or an invariant is violated. Does not allocate.
void FetchThread::break_off() {
  scheduler_.break_off();
  static_cast<void>(queue_.release());  // reads may be in flight in it
}

void FetchThread::run() {
  queue_ = storage::make_fetch_queue(format_->storage(), kind_);
  scheduler_.serve_by(*queue_);
  FetchTable::Entries fresh;
  while (true) {
    const FetchScheduler::Step step = scheduler_.next(fresh);
    switch (step.kind) {
      case FetchScheduler::Step::Kind::kFetch:
        fetch(*step.entry);
        break;
      case FetchScheduler::Step::Kind::kPlanEpoch:
        plan_behind(step.ended);
        break;
      case FetchScheduler::Step::Kind::kMakeEntry:
        fresh.emplace_back().parts.resize(format_->most_pieces());
        break;
      case FetchScheduler::Step::Kind::kCancel:
        for (storage::Fetch* fetch : scheduler_.under_way()) queue_->cancel(*fetch);
        wait();
        break;
      case FetchScheduler::Step::Kind::kWait:
        wait();
        break;
      case FetchScheduler::Step::Kind::kEnd:
        return;
    }
  }
}

void FetchThread::fetch(FetchTable::Entry& entry) {
  // samples that cannot be fetched are read, or fail, when a thread needs them; opening a shard may block here
  pieces_.clear();
  if (!format_->find_pieces(entry.sample, pieces_)) pieces_.clear();
  entry.used = entry.under_way = pieces_.size();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    FetchTable::Part& part = entry.parts[i];
    part.entry = &entry;
    part.piece = std::move(pieces_[i]);
    part.version = part.piece.version;
    part.bytes = std::span<const std::byte>();
    part.was_near = false;
    part.most_bytes = plan_.read_ahead_bytes;  // a larger one is read by the thread that needs it
    queue_->start(part);
  }
  if (pieces_.empty()) scheduler_.finished(entry);
}

void FetchThread::plan_behind(const FetchOrder::PlannedEpoch& ended) {
  const std::uint64_t epoch = ended.epoch + 1;
  FetchOrder::PlannedEpoch following{epoch, std::make_shared<const plan::Plan>(whole_epoch(plan_, epoch))};
  scheduler_.follow(ended, following);
}

void FetchThread::wait() {
  using Clock = storage::FetchQueue::Clock;
  for (storage::Fetch* fetch = queue_->finished(Clock::now() + std::chrono::hours(1)); fetch != nullptr;
       fetch = queue_->finished(Clock::time_point{}))
    finished_.push_back(fetch);
  scheduler_.finished(finished_);
  finished_.clear();
}

}  // namespace feedline::pipeline
