// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/epoch.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace feedline::pipeline {
namespace {

constexpr std::size_t kUsuallyAhead = 256;  // batches delivered ahead of a slow one; more allocate

bool by_row(const BadEntry& a, const BadEntry& b) { return a.row < b.row; }
bool by_sample(const BadEntry& a, const BadEntry& b) { return a.sample.sample < b.sample.sample; }

}  // namespace

Epoch::Epoch(const Config& config, const BadSamplePolicy& policy)
    : config_(config),
      plan_(std::make_shared<plan::Plan>(config.order, config.plan)),
      policy_(policy),
      end_(plan_->positions()) {
  delivered_ahead_.reserve(kUsuallyAhead);
}

Epoch::~Epoch() {
  for (const auto& slot : slots_) slot->tickets.close();
}

bool Epoch::can_open() const {
  if (config_.given) return !given_.empty();
  if (next_open_ >= plan_->batches()) return false;
  const std::uint64_t first = next_open_ * config_.plan.batch_rows;
  if (first >= end_) return false;
  return !config_.plan.drop_last || first + config_.plan.batch_rows <= end_;
}

void Epoch::claim(const std::shared_ptr<Slot>& slot) {
  FEEDLINE_CHECK(can_open());
  slot->batch = next_open_++;
  slot->first = slot->batch * config_.plan.batch_rows;
  if (config_.given) {
    slot->given.splice(slot->given.end(), given_, given_.begin());
    slot->rows = slot->given.front().size();
  } else {
    slot->plan = plan_;
    slot->bucket = plan_->bucket(slot->batch);
    slot->rows = std::min(plan_->rows(slot->batch), end_ - slot->first);
  }
  FEEDLINE_CHECK(slot->rows <= slot->samples.size());
  slot->samples.resize(slot->rows);
  slot->grain = config_.grain;
  slot->is_assigned = config_.given || config_.assign_at_open;
  slot->tickets.announce(slot->rows);
  unsettled_rows_ += slot->rows;
  slot->node_in_epoch.front() = slot;
  slots_.splice(slots_.end(), slot->node_in_epoch);
  if (drained_ == slots_.end()) --drained_;
  if (unresolved_ == slots_.end()) --unresolved_;
}

std::optional<Ticket> Epoch::take_ticket() {
  if (refill_) return std::exchange(refill_, std::nullopt);
  for (auto slot = drained_; slot != slots_.end(); ++slot) {
    const RowRun run = (*slot)->tickets.take(config_.grain);
    if (run.rows > 0) return Ticket{*slot, run.first, run.rows};
    if (!run.is_paused && slot == drained_) ++drained_;  // permanently: refills have separate tickets
  }
  return std::nullopt;
}

void Epoch::note(Slot& slot, std::uint64_t row, Outcome outcome) {
  slot.samples[row] = outcome.sample;
  for (BadEntries* entries : {&outcome.replaced, &outcome.failed})
    for (BadEntry& entry : *entries) entry.sample.batch = index_of(slot.batch);
  slot.bad.splice(slot.bad.end(), outcome.replaced);
  slot.failures.splice(slot.failures.end(), outcome.failed);
}

void Epoch::settle(Slot& completed) {
  completed.complete = true;
  ++complete_;
  // a failed refill is retried first
  completed.failures.sort(by_row);
  if (config_.prepares && policy_.on_error() != OnError::kSkip) finalize(completed);
  resolve();
  if (config_.prepares && policy_.on_error() == OnError::kSkip && !config_.in_order) finalize_ahead();
}

void Epoch::resolve() {
  for (; unresolved_ != slots_.end(); ++unresolved_) {
    const auto& slot = *unresolved_;
    if (!slot->complete) return;
    if (!slot->judged) {
      slot->judged = true;
      // earlier refills used up the batch; had they come sooner, it would not have been opened
      if (deliverable_rows(*slot) == 0) slot->cut_off.splice(slot->cut_off.end(), slot->failures);
    }
    if (policy_.on_error() == OnError::kSkip && refill(slot)) return;  // continue when the refill is done
    // rows finish in any order: sort, so that the log does not depend on threads
    if (policy_.on_error() == OnError::kReplace) slot->bad.sort(by_sample);
    slot->refilled = plan_->positions() - end_;
    slot->resolved = true;
    ++resolved_;
    --complete_;
    unsettled_rows_ -= slot->rows;
    if (!config_.prepares) continue;
    if (!slot->is_final) finalize(*slot);
    if (slot->ready) ++ready_;
  }
}

// With Config::prepares: marks that the slot's rows will not change any more and that the rows to deliver are known.
void Epoch::finalize(Slot& slot) {
  slot.is_final = true;
  const std::uint64_t rows = deliverable_rows(slot);
  const bool is_delivered = rows > 0 && (slot.failures.empty() || policy_.on_error() == OnError::kReport);
  if (!is_delivered) {
    slot.ready = true;
    return;
  }
  slot.rows = rows;
  std::shared_ptr<Slot>* last = &final_;
  while (*last) last = &(*last)->prepared->next_final;
  *last = slot.prepared->slot.lock();
}

// Finalizes slots that can be delivered out of order, even if earlier slots still receive refills.
void Epoch::finalize_ahead() {
  for (auto slot = unresolved_; slot != slots_.end(); ++slot)
    if ((*slot)->complete && !(*slot)->is_final && safe_out_of_order(**slot)) finalize(**slot);
}

void Epoch::note_ready(Slot& slot) {
  slot.ready = true;
  if (slot.resolved) ++ready_;
  variable_bytes_ += slot.prepared->composed.bytes();
}

// Creates one refill ticket for the slot's first failed row that still counts, if there is one. Creates only one at a
// time, because the result of a refill, which may also fail, determines the next refill.
bool Epoch::refill(const std::shared_ptr<Slot>& slot) {
  while (!slot->failures.empty()) {
    const auto failure = slot->failures.begin();
    const std::uint64_t row = failure->row, position = slot->first + row;
    // a failed refill is logged like the sample it replaces; its position is already past end_
    const bool was_refill = slot->draws[row] != plan_->at(position).draw;
    if (!was_refill && position >= end_) {  // an earlier refill took this position
      slot->cut_off.splice(slot->cut_off.end(), slot->failures, failure);
      continue;
    }
    failure->sample.action = OnError::kSkip;
    slot->bad.splice(slot->bad.end(), slot->failures, failure);
    if (position >= end_) continue;
    const std::uint64_t last = --end_;
    if (last == position) continue;  // the end of the order: no replacement is left, so the batch gets shorter
    const plan::OrderedSample placed = plan_->at(last);
    slot->samples[row] = placed.sample;
    slot->draws[row] = placed.draw;
    slot->complete = false;
    --complete_;
    slot->tickets.reopen_one();
    refill_ = Ticket{slot, row, 1, true};
    return true;
  }
  return false;
}

std::uint64_t Epoch::deliverable_rows(const Slot& slot) const {
  if (config_.given) return slot.rows;
  if (slot.first >= end_) return 0;
  const std::uint64_t rows = std::min(slot.rows, end_ - slot.first);
  return config_.plan.drop_last && rows < plan_->rows(slot.batch) ? 0 : rows;
}

// A slot may be delivered before earlier slots are settled only if refills of the earlier slots cannot take its rows.
bool Epoch::safe_out_of_order(const Slot& slot) const {
  if (policy_.on_error() != OnError::kSkip) return true;
  // each unsettled row needs at most one good refill, and every bad refill uses one more position: reserve twice that
  return slot.failures.empty() && slot.first + slot.rows + 2 * unsettled_rows_ <= end_;
}

// Out-of-order delivery searches the open batches if one is ready; their number does not depend on the number of
// threads.
Epoch::Slots::iterator Epoch::next_ready() {
  if (resolved_ > 0 && (!config_.prepares || slots_.front()->ready)) return slots_.begin();
  if (config_.in_order || resolved_ + complete_ == 0) return slots_.end();
  return std::ranges::find_if(slots_, [this](const auto& slot) {
    return config_.prepares ? slot->complete && slot->ready : slot->complete && safe_out_of_order(*slot);
  });
}

std::shared_ptr<Slot> Epoch::take_ready() {
  const auto at = next_ready();
  if (at == slots_.end()) return nullptr;
  if (at == drained_) ++drained_;
  if (at == unresolved_) ++unresolved_;
  auto ready = std::move(*at);
  ready->node_in_epoch.splice(ready->node_in_epoch.end(), slots_, at);
  if (config_.prepares) {
    variable_bytes_ -= ready->prepared->composed.bytes();
    if (ready->resolved) --ready_;
  }
  if (ready->resolved) {
    --resolved_;
    refilled_ = std::max(refilled_, ready->refilled);
  } else {
    --complete_;
    unsettled_rows_ -= ready->rows;
  }
  if (ready->batch == next_batch_) {
    ++next_batch_;
    auto ahead = delivered_ahead_.begin();
    for (; ahead != delivered_ahead_.end() && *ahead == next_batch_; ++ahead) ++next_batch_;
    delivered_ahead_.erase(delivered_ahead_.begin(), ahead);
  } else {
    delivered_ahead_.insert(std::ranges::upper_bound(delivered_ahead_, ready->batch), ready->batch);
  }
  const std::uint64_t rows = deliverable_rows(*ready);
  ready->rows = rows;
  ready->samples.resize(rows);
  return ready;
}

bool Epoch::over() const { return slots_.empty() && !can_open() && (!config_.given || all_given_); }

bool Epoch::delivers_as(const Epoch& other) const {
  const plan::PlanConfig& plan = other.config_.plan;
  return config_.epoch == other.config_.epoch && next_batch_ == 0 && delivered_ahead_.empty() && plan.begin == 0 &&
         plan.delivered.empty() && plan.left_out == 0 && config_.selection == other.config_.selection;
}

std::vector<Positions> Epoch::delivered(std::vector<Positions> memory) const {
  std::vector<Positions> spans = std::move(memory);
  spans.assign(config_.plan.delivered.begin(), config_.plan.delivered.end());
  for (const std::uint64_t batch : delivered_ahead_) plan_->add_positions(batch, spans);
  return plan::tidied(std::move(spans), position());
}

std::uint64_t Epoch::index_of(std::uint64_t batch) const {
  if (config_.given) return batch;
  return plan_->index_of(batch);
}

}  // namespace feedline::pipeline
