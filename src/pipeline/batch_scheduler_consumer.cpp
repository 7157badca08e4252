// SPDX-License-Identifier: Apache-2.0
// The consumer's side of a scheduler: starts epochs, waits for and delivers batches; and queries from any thread.
#include <algorithm>
#include <iterator>
#include <list>
#include <string>
#include <utility>

#include "base/clock.h"
#include "pipeline/batch_scheduler.h"
#include "telemetry/spans.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

std::uint64_t bytes_of(const Batch& batch) {
  std::uint64_t bytes = 0;
  for (const BatchField& field : batch.fields())
    bytes += field.form == BatchForm::kList ? field.buffer.size() : field.array.spec.bytes();
  return bytes;
}

}  // namespace

std::shared_ptr<const Error> BatchScheduler::ended() const { return stopping_ ? closed_error_ : broken_; }

Result<void> BatchScheduler::begin(const EpochStart& start, std::unique_ptr<Epoch> epoch,
                                   std::unique_ptr<Epoch> following, bool feeds_gpu) {
  const bool goes_on = following != nullptr;
  Wakes wakes;
  std::shared_ptr<const Error> past;
  {
    base::BriefLock lock(mutex_);
    if (const auto error = ended()) {
      lock.unlock();
      return std::unexpected(*error);
    }
    auto dropped = epochs_.begin(std::move(epoch), std::move(following));
    past.swap(failure_);
    update_recall();
    delivery_.begin(start, base::now_ns());
    wakes.parked = limits_.begin_epoch(feeds_gpu);
    let_go(lock, std::move(dropped), wakes);
  }
  if (parts_.ahead) parts_.ahead->begin(goes_on, start.epoch);
  wake(wakes);
  return {};
}

Result<void> BatchScheduler::give(std::vector<GivenSample> samples) {
  const auto no_epoch = [] { return config_error("give: no epoch has been started"); };
  if (parts_.ahead) {
    std::optional<std::uint64_t> oldest;
    {
      const base::BriefLock lock(mutex_);
      if (const Epoch* epoch = epochs_.current()) oldest = epoch->oldest_batch();
    }
    if (!oldest) return no_epoch();
    parts_.ahead->give(samples, *oldest);
  }
  std::list<std::vector<GivenSample>> batch;
  batch.push_back(std::move(samples));
  {
    const base::BriefLock lock(mutex_);
    if (!epochs_.current()) return no_epoch();
    epochs_.current()->give(std::move(batch));
  }
  work_cv_.notify_all();
  return {};
}

Result<void> BatchScheduler::end_giving() {
  const base::BriefLock lock(mutex_);
  if (!epochs_.current()) return config_error("end_giving: no epoch has been started");
  epochs_.current()->end_giving();
  return {};
}

// Stores the current slot and its result for the consumer.
void BatchScheduler::note_ready(HandOver& over, bool was_ready, Wakes& wakes) {
  const Epoch& epoch = *epochs_.current();
  over.index = epoch.index_of(over.slot->batch);
  over.asked_ns = delivery_.waiting_since();
  over.number = delivery_.batches();
  over.noted = delivery_.note(epoch, *over.slot, base::now_ns());
  over.got_ns = delivery_.last_ns();
  if (over.noted == Delivery::Noted::kNothing) return;
  const auto next = limits_.delivered(over.got_ns, was_ready ? 0 : over.got_ns - over.asked_ns);
  over.measures = next == Adaptation::Next::kMeasure;
  wakes.parked = next == Adaptation::Next::kChanged;
  wakes.all_workers |= wakes.parked || epochs_.open_slots() + leaving_ <= limits_.slots_to_wake();
}

// Does the slow part of a delivery, without the lock.
Result<Loader::Polled> BatchScheduler::hand_over(HandOver& over, Batch& out) {
  telemetry::record_span(Stage::kConsumer, over.asked_ns, over.got_ns, over.number);
  auto handed = delivery_.hand_over(*over.slot, over.noted, over.index, out);
  if (handed)
    consumer_.add_item(base::now_ns() - over.got_ns, bytes_of(out));
  else
    refused(over, handed.error());
  if (over.measures) measure();
  if (!handed) return std::unexpected(std::move(handed).error());
  return Loader::Polled::kBatch;
}

// Returns the slot's error to the consumer.
void BatchScheduler::refused(const HandOver& over, const Error& error) {
  const bool ends = over.noted == Delivery::Noted::kOverBudget;
  auto failure = ends ? std::make_shared<const Error>(error) : nullptr;
  const base::BriefLock lock(mutex_);
  if (over.noted == Delivery::Noted::kBatch) delivery_.take_back(over.slot->rows);
  if (ends) failure_.swap(failure);
  update_recall();
}

void BatchScheduler::measure() {
  const Usage usage = limits_.usage(parts_.counters);
  Wakes wakes;
  {
    const base::BriefLock lock(mutex_);
    wakes.all_workers = wakes.parked = limits_.measured(usage);
  }
  wake(wakes);
}

Result<Loader::Polled> BatchScheduler::poll(std::chrono::milliseconds wait, Batch& out) {
  const std::uint64_t started = base::now_ns();
  const auto deadline = std::chrono::steady_clock::now() + wait;
  HandOver over;
  Wakes wakes;
  base::BriefLock lock(mutex_);
  delivery_.wait(started);
  bool was_ready = delivery_.waiting_since() == started;
  while (true) {
    auto error = ended();
    if (!error && std::exchange(interrupted_, false)) error = interrupted_error_;
    if (!error) error = failure_;
    if (error) {
      lock.unlock();
      wake(wakes);
      return std::unexpected(*error);
    }
    Epoch* epoch = epochs_.current();
    over.slot = epoch->take_ready();
    if (over.slot) {
      note_held();
      note_ready(over, was_ready, wakes);
      if (over.noted == Delivery::Noted::kNothing) {  // not what the consumer waits for
        let_go(lock, std::move(over.slot), wakes);
        continue;
      }
      lock.unlock();
      wake(wakes);
      consumer_.add_starved(over.got_ns - started);
      return hand_over(over, out);
    }
    if (wakes.any()) {
      lock.unlock();
      wake(wakes);
      lock.lock();
      continue;
    }
    if (epoch->over()) return Loader::Polled::kEnd;
    was_ready = false;
    if (lock.wait_until(ready_cv_, deadline) == std::cv_status::timeout) return late(lock, started);
  }
}

// Called when no batch is ready.
Result<Loader::Polled> BatchScheduler::late(base::BriefLock& lock, std::uint64_t started_ns) {
  const std::uint64_t now = base::now_ns();
  const std::uint64_t since = delivery_.waiting_since();
  Wakes wakes;
  wakes.all_workers = wakes.parked = limits_.waits(now, now - since);
  const std::chrono::milliseconds timeout = parts_.plan.timeout;
  const bool is_stalled = timeout.count() > 0 && now - since > static_cast<std::uint64_t>(timeout.count()) * 1'000'000;
  const AwaitedBatch awaited = is_stalled ? AwaitedBatch::of(epochs_.current()) : AwaitedBatch();
  lock.unlock();
  wake(wakes);
  consumer_.add_starved(now - started_ns);
  if (is_stalled) return std::unexpected(stall_error(timeout, awaited, parts_.progress, parts_.recipe));
  return Loader::Polled::kPending;
}

void BatchScheduler::interrupt() {
  {
    const base::BriefLock lock(mutex_);
    interrupted_ = true;
  }
  ready_cv_.notify_all();
}

void BatchScheduler::stop() {
  {
    const base::BriefLock lock(mutex_);
    stopping_ = true;
    update_recall();
  }
  Wakes all{true, false, true, true};
  wake(all);
}

void BatchScheduler::clear() {
  DroppedEpochs dropped;  // destroyed after the lock is released
  const base::BriefLock lock(mutex_);
  dropped = epochs_.clear();
  note_held();
}

EpochStart BatchScheduler::position() const {
  EpochStart position;
  position.delivered.reserve(Delivery::kUsuallyAhead);
  const base::BriefLock lock(mutex_);
  position = delivery_.position();
  return position;
}

bool BatchScheduler::has_batches() const {
  const base::BriefLock lock(mutex_);
  const Epoch* epoch = epochs_.current();
  return epoch != nullptr && epoch->plan()->batches(0) > 0;  // no rank has more than the first
}

std::vector<std::uint64_t> BatchScheduler::rows_per_rank() const {
  std::optional<std::uint64_t> batch;
  std::shared_ptr<const plan::Plan> plan;
  {
    const base::BriefLock lock(mutex_);
    batch = delivery_.last_batch();
    if (epochs_.current()) plan = epochs_.current()->plan();
  }
  std::vector<std::uint64_t> rows;
  if (!batch || !plan) return rows;
  for (std::uint64_t rank = 0; rank < parts_.plan.ranks.world_size; ++rank)
    rows.push_back(rows_delivered(parts_.plan, plan->rows(*batch, rank)));
  return rows;
}

std::vector<BadSample> BatchScheduler::bad_samples(std::uint64_t from) const {
  std::uint64_t count = 0;
  BadEntries::const_iterator entry;
  {
    const base::BriefLock lock(mutex_);
    const BadEntries& bad = delivery_.bad();
    if (bad.size() > from) count = bad.size() - from, entry = std::prev(bad.end());
  }
  // entries may be appended after the last one; earlier ones do not change
  for (std::uint64_t i = 1; i < count; ++i) --entry;
  std::vector<BadSample> samples;
  samples.reserve(count);
  for (std::uint64_t i = 1; i < count; ++i) samples.push_back((entry++)->sample);
  if (count > 0) samples.push_back(entry->sample);
  return samples;
}

std::uint64_t BatchScheduler::bad_count() const {
  const base::BriefLock lock(mutex_);
  return delivery_.bad().size();
}

std::uint64_t BatchScheduler::variable_bytes() const {
  const base::BriefLock lock(mutex_);
  return variable_bytes_;
}

void BatchScheduler::add_to(LoaderStats& stats) const {
  std::optional<Adaptation::Decided> decided;
  std::uint64_t first_ns = 0;
  const std::uint64_t now_ns = base::now_ns();
  {
    const base::BriefLock lock(mutex_);
    const Epoch* epoch = epochs_.current();
    delivery_.add_to(stats, epoch != nullptr && !epoch->over(), now_ns);
    if (epoch != nullptr) stats.ready_batches = epoch->ready_slots();
    decided = limits_.decided();
    first_ns = delivery_.first_ns();
  }
  const telemetry::HeldBytes::Look held = held_.look();
  stats.held_bytes = held.now;
  stats.held_bytes_peak = held.peak;
  if (decided) stats.controller = decided->stats(first_ns);
  stats.mix = memory_.mix_stats();
}

}  // namespace feedline::pipeline
