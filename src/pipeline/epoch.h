// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches being filled and the rows still to hand out: the bookkeeping of one epoch, without threads or locks.

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/bad_sample_policy.h"
#include "pipeline/slot.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// Not thread-safe: the pipeline calls it under its lock, where it looks through no list, and allocates nothing. Threads
// that still have tickets of an epoch that is gone get no further ones.
class Epoch {
 public:
  struct Config {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Order> order;
    plan::PlanConfig plan;
    bool in_order = true;
    bool given = false;          // batches come from give(), not from the plan
    std::uint64_t grain = 1;     // most rows of a ticket
    bool place_at_open = false;  // which samples a batch has is to be known when it opens, not ticket by ticket
    bool prepares = false;       // a final slot has to be made ready: see take_final()
  };
  Epoch(const Config& config, const BadSamplePolicy& policy);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  // The first row to hand out in an open slot, or a refill; nullopt: none is left.
  std::optional<Ticket> take_ticket();
  bool has_refill() const { return refill_.has_value(); }
  // With Config::given: the samples of the next batch, at most batch_size of them; and that no more will follow.
  void give(std::list<std::vector<GivenSample>> batch) { given_.splice(given_.end(), batch); }
  void end_giving() { all_given_ = true; }
  bool can_open() const;  // another batch in the plan?
  // Makes it the next batch. Requires: can_open(), and a slot made for most_rows(). Its rows can be taken once the
  // caller has placed it, given it a layout, and resumed its tickets.
  void claim(const std::shared_ptr<Slot>& slot);
  std::uint64_t most_rows() const { return config_.plan.batch_size; }
  bool prepares() const { return config_.prepares; }
  // Has take_ticket() found none only because the next ones are being prepared?
  bool rows_follow() const { return drained_ != slots_.end() && (*drained_)->tickets.is_paused(); }
  // What came of a row, where it is not its own sample. Before the row is finished.
  void note(Slot& slot, std::uint64_t row, Outcome outcome);
  // The last row of a slot was finished. Settles complete slots in batch order, so that refills do not depend on which
  // of them was complete first.
  void settle(Slot& completed);
  // With Config::prepares: slots that have become final since the last call, each with the next one in Slot::Prepared,
  // whose `rows` are those that will be delivered. The caller makes them ready without the lock, and then says so of
  // each. nullptr: there are none.
  std::shared_ptr<Slot> take_final() { return std::move(final_); }
  void note_ready(Slot& slot);

  // The next complete slot to deliver, removed from the epoch; nullptr: none yet.
  std::shared_ptr<Slot> take_ready();
  bool over() const;  // nothing left to deliver
  std::size_t open_slots() const { return slots_.size(); }
  std::size_t ready_slots() const { return config_.prepares ? ready_ : resolved_; }
  std::uint64_t late_bytes() const { return late_bytes_; }  // of late fields of slots that are ready
  const std::shared_ptr<Slot>& oldest() const { return slots_.front(); }
  std::uint64_t oldest_batch() const { return slots_.empty() ? next_open_ : slots_.front()->batch; }  // not delivered

  std::uint64_t epoch() const { return config_.epoch; }
  // Does this epoch, of which nothing was delivered, give just what `other` would from its start?
  bool delivers_as(const Epoch& other) const;
  // What was delivered so far, as a plan of the rest needs to know it.
  std::uint64_t position() const { return plan_->begin_of(next_batch_); }
  std::vector<Positions> delivered(std::vector<Positions> memory = {}) const;  // whose memory the result has
  std::uint64_t left_out() const { return config_.plan.left_out + refilled_; }
  // A batch's number in the epoch, counted in batches of this size from its beginning.
  std::uint64_t index_of(std::uint64_t batch) const;
  const std::shared_ptr<const plan::Plan>& plan() const { return plan_; }

 private:
  using Slots = std::list<std::shared_ptr<Slot>>;

  void resolve();
  void finalize(Slot& slot);
  void finalize_ahead();
  bool refill(const std::shared_ptr<Slot>& slot);
  std::uint64_t deliverable_rows(const Slot& slot) const;
  bool safe_out_of_order(const Slot& slot) const;
  Slots::iterator next_ready();  // the end: none is

  Config config_;
  std::shared_ptr<const plan::Plan> plan_;
  const BadSamplePolicy& policy_;
  std::uint64_t end_;            // positions from here on are not delivered: refills took them
  std::uint64_t next_open_ = 0;  // next batch to open
  Slots slots_;                  // open, in batch order
  // So that nobody looks through all of them: those before the first have no row left, those before the second are
  // resolved.
  Slots::iterator drained_ = slots_.end(), unresolved_ = slots_.end();
  std::size_t resolved_ = 0, complete_ = 0;  // slots; of the latter only those that are not resolved
  std::size_t ready_ = 0;                    // of those that are resolved; with Config::prepares
  std::uint64_t late_bytes_ = 0;
  std::shared_ptr<Slot> final_;                 // the oldest that nobody has taken
  std::uint64_t unsettled_rows_ = 0;            // of slots that are not resolved
  std::optional<Ticket> refill_;                // of the first slot that is not resolved: one at a time
  std::vector<std::uint64_t> delivered_ahead_;  // batches, the lowest first
  std::uint64_t next_batch_ = 0;                // lowest one not delivered
  std::uint64_t refilled_ = 0;                  // as of the batches delivered
  std::list<std::vector<GivenSample>> given_;   // not opened yet
  bool all_given_ = false;
};

}  // namespace feedline::pipeline
