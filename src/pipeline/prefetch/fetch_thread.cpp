// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_thread.h"

#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

FetchThread::FetchThread(std::shared_ptr<const format::RecordFormat> format, const PipelinePlan& plan,
                         storage::QueueKind kind, FetchScheduler& scheduler, const PartReads* parts)
    : format_(std::move(format)), plan_(plan), kind_(kind), scheduler_(scheduler) {
  if (parts != nullptr) finder_.emplace(*parts);
}

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
        cancel_all();
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
  entry.part_read = finder_ ? finder_->find(entry.sample, {plan_.order.seed, entry.epoch, entry.draw}) : nullptr;
  if (entry.part_read)
    pieces_.push_back(entry.part_read->piece);
  else if (!format_->find_pieces(entry.sample, pieces_))
    pieces_.clear();
  entry.used = entry.under_way = pieces_.size();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    FetchTable::Part& part = entry.parts[i];
    part.entry = &entry;
    part.piece = std::move(pieces_[i]);
    part.version = part.piece.version;
    part.whole_version.reset();
    part.bytes = std::span<const std::byte>();
    part.was_near = part.has_started_shared = false;
    part.most_bytes = plan_.read_ahead_bytes;  // a larger one is read by the thread that needs it
    part.piece.is_shared ? fetch_shared(part) : queue_->start(part);
  }
  if (entry.under_way == 0) scheduler_.finished(entry);
}

// Uses the bytes of an earlier fetch, in flight or finished, until all samples that need them were read.
void FetchThread::fetch_shared(FetchTable::Part& part) {
  const Range range{part.piece.reader.get(), part.piece.offset, part.piece.bytes};
  const auto known = shared_.find(range);
  part.shared = known == shared_.end() ? nullptr : known->second.lock();
  if (part.shared && part.shared->is_finished && part.shared->bytes) {
    part.bytes = part.shared->bytes;
    part.was_near = part.shared->was_near;
    --part.entry->under_way;
    return;
  }
  if (!part.shared || part.shared->is_finished) {
    std::erase_if(shared_, [](const auto& one) { return one.second.expired(); });
    part.shared = std::make_shared<FetchTable::Shared>();
    part.has_started_shared = true;
    part.shared->reader = part.piece.reader;
    part.shared->piece = part.piece;
    part.shared->version = part.version;
    part.shared->most_bytes = part.most_bytes;
    shared_.insert_or_assign(range, part.shared);
    queue_->start(*part.shared);
  }
  part.shared->waiting.push_back(&part);
}

void FetchThread::cancel_all() {
  for (storage::Fetch* fetch : scheduler_.under_way()) queue_->cancel(*fetch);
  for (const auto& one : shared_)
    if (const auto shared = one.second.lock(); shared && !shared->is_finished) queue_->cancel(*shared);
}

void FetchThread::plan_behind(const FetchOrder::PlannedEpoch& ended) {
  const std::uint64_t epoch = ended.epoch + 1;
  FetchOrder::PlannedEpoch following{epoch, std::make_shared<const plan::Plan>(whole_epoch(plan_, epoch))};
  scheduler_.follow(ended, following);
}

void FetchThread::note_finished(FetchTable::Queued& fetch) {
  if (!fetch.is_shared) return finished_.push_back(&fetch);
  auto& shared = static_cast<FetchTable::Shared&>(fetch);
  shared.is_finished = true;
  for (FetchTable::Part* const part : shared.waiting) {
    part->bytes = shared.bytes;
    part->was_near = shared.was_near;
    finished_.push_back(part);
  }
  shared.waiting.clear();
}

void FetchThread::wait() {
  using Clock = storage::FetchQueue::Clock;
  for (storage::Fetch* fetch = queue_->finished(Clock::now() + std::chrono::hours(1)); fetch != nullptr;
       fetch = queue_->finished(Clock::time_point{}))
    note_finished(static_cast<FetchTable::Queued&>(*fetch));
  scheduler_.finished(finished_);
  finished_.clear();
}

}  // namespace feedline::pipeline
