// SPDX-License-Identifier: Apache-2.0
// The consumer's side of an exchange: epochs begin, batches are waited for and handed over; and what any thread may
// ask.
#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "pipeline/exchange.h"
#include "telemetry/spans.h"

namespace feedline::pipeline {

using telemetry::Stage;

namespace {

std::unexpected<Error> cancelled(std::string what) {
  return std::unexpected(Error{ErrorCode::kCancelled, std::move(what), {}, 0});
}

}  // namespace

Result<void> Exchange::check_alive() const {
  if (stopping_) return cancelled("the loader is closed");
  if (broken_) return std::unexpected(*broken_);
  return {};
}

Result<void> Exchange::begin(const EpochStart& start, std::unique_ptr<Epoch> epoch, std::unique_ptr<Epoch> following) {
  const bool goes_on = following != nullptr;
  {
    const std::lock_guard lock(mutex_);
    FEEDLINE_CHECK_OK(check_alive());
    epochs_.begin(std::move(epoch), std::move(following));
    failure_.reset();
    update_recall();
    delivery_.begin(start, base::now_ns());
    settings_.begin_epoch();
  }
  if (parts_.ahead) parts_.ahead->begin(goes_on);
  work_cv_.notify_all();
  return {};
}

Result<void> Exchange::give(std::vector<GivenSample> samples) {
  {
    const std::lock_guard lock(mutex_);
    Epoch* epoch = epochs_.current();
    if (epoch == nullptr) return config_error("give: no epoch has been started");
    if (parts_.ahead) parts_.ahead->give(samples, epoch->oldest_batch());
    epoch->give(std::move(samples));
  }
  work_cv_.notify_all();
  return {};
}

Result<void> Exchange::end_giving() {
  const std::lock_guard lock(mutex_);
  if (!epochs_.current()) return config_error("end_giving: no epoch has been started");
  epochs_.current()->end_giving();
  return {};
}

Result<Loader::Polled> Exchange::deliver(Slot& slot, Batch& out) {
  const Epoch& epoch = *epochs_.current();
  if (auto noted = delivery_.note(epoch, slot, base::now_ns()); !noted) failure_ = std::move(noted).error();
  update_recall();
  if (failure_) return std::unexpected(*failure_);
  return delivery_.take(epoch, slot, out);
}

Result<Loader::Polled> Exchange::poll(std::chrono::milliseconds wait, Batch& out) {
  const std::uint64_t started = base::now_ns();
  const auto deadline = std::chrono::steady_clock::now() + wait;
  std::unique_lock lock(mutex_);
  delivery_.wait(started);
  bool was_ready = delivery_.waiting_since() == started;
  while (true) {
    FEEDLINE_CHECK_OK(check_alive());
    if (std::exchange(interrupted_, false)) return cancelled("interrupted");
    if (failure_) return std::unexpected(*failure_);
    Epoch* epoch = epochs_.current();
    if (auto slot = epoch->take_ready()) {
      const std::uint64_t asked_ns = delivery_.waiting_since(), number = delivery_.batches();
      auto delivered = deliver(*slot, out);
      slot.reset();  // where it held no batch for the consumer, its memory is free before a thread is woken for it
      const bool has_room = epochs_.open_slots() <= settings_.slots_to_wake();
      if (delivered == Loader::Polled::kPending) {  // nothing that the consumer waits for
        if (has_room) work_cv_.notify_all();
        continue;
      }
      const std::uint64_t got_ns = delivery_.last_ns();
      consumer_.add_starved(got_ns - started);
      telemetry::record_span(Stage::kConsumer, asked_ns, got_ns, number);
      if (settings_.delivered(got_ns, was_ready ? 0 : got_ns - asked_ns, parts_.counters)) wake_all_workers();
      // a thread that is woken under the lock only goes to sleep again, and may take the CPU from its holder
      lock.unlock();
      if (has_room) work_cv_.notify_all();
      return delivered;
    }
    if (epoch->over()) return Loader::Polled::kEnd;
    was_ready = false;
    if (ready_cv_.wait_until(lock, deadline) == std::cv_status::timeout) return late(started);
  }
}

// There is no batch yet.
Result<Loader::Polled> Exchange::late(std::uint64_t started_ns) {
  const std::uint64_t now = base::now_ns();
  const std::uint64_t since = delivery_.waiting_since();
  if (settings_.waits(now, now - since)) wake_all_workers();
  consumer_.add_starved(now - started_ns);
  const std::chrono::milliseconds timeout = parts_.plan.options.timeout;
  if (timeout.count() > 0 && now - since > static_cast<std::uint64_t>(timeout.count()) * 1'000'000)
    return std::unexpected(stall_error(timeout, epochs_.current(), parts_.progress, parts_.recipe));
  return Loader::Polled::kPending;
}

void Exchange::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  ready_cv_.notify_all();
}

void Exchange::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    update_recall();
  }
  wake_all_workers();
  ready_cv_.notify_all();
}

void Exchange::clear() {
  const std::lock_guard lock(mutex_);
  epochs_.clear();
}

EpochStart Exchange::position() const {
  const std::lock_guard lock(mutex_);
  return delivery_.position();
}

bool Exchange::has_batches() const {
  const std::lock_guard lock(mutex_);
  const Epoch* epoch = epochs_.current();
  return epoch != nullptr && epoch->plan().batches(0) > 0;  // no rank has more than the first
}

std::vector<std::uint64_t> Exchange::rows_per_rank() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> rows;
  const auto batch = delivery_.last_batch();
  if (!batch || !epochs_.current()) return rows;
  const plan::Plan& plan = epochs_.current()->plan();
  for (std::uint64_t rank = 0; rank < parts_.plan.options.world_size; ++rank) rows.push_back(plan.rows(*batch, rank));
  return rows;
}

std::vector<BadSample> Exchange::bad_samples(std::uint64_t from) const {
  const std::lock_guard lock(mutex_);
  const auto& bad = delivery_.bad();
  return {bad.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(from, bad.size())), bad.end()};
}

std::uint64_t Exchange::bad_count() const {
  const std::lock_guard lock(mutex_);
  return delivery_.bad().size();
}

void Exchange::leave_a_cpu() {
  const std::lock_guard lock(mutex_);
  if (settings_.leave_a_cpu()) wake_all_workers();
}

bool Exchange::leaves_a_cpu() const {
  const std::lock_guard lock(mutex_);
  return settings_.leaves_a_cpu();
}

void Exchange::add_to(LoaderStats& stats) const {
  const std::lock_guard lock(mutex_);
  const Epoch* epoch = epochs_.current();
  delivery_.add_to(stats, epoch != nullptr && !epoch->over(), base::now_ns());
  if (epoch != nullptr) stats.ready_batches = epoch->ready_slots();
  stats.held_bytes = epochs_.open_slots() * parts_.plan.batch_bytes;
  stats.held_bytes_peak = held_peak_;
  if (parts_.ahead) stats.held_bytes += parts_.ahead->held_bytes();
  stats.controller = settings_.stats(delivery_.first_ns());
}

}  // namespace feedline::pipeline
