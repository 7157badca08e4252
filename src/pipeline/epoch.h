// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches being filled and the rows still to hand out: the bookkeeping of one epoch, without threads or locks. What
// threads do to a batch between two visits to the pipeline's lock is in row_tickets.h.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "batch/batch_layout.h"
#include "feedline/loader.h"
#include "memory/allocator.h"
#include "pipeline/bad_sample_policy.h"
#include "pipeline/row_tickets.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// A batch that is being filled. A thread may write the memory, samples and draws of rows that it has a ticket for;
// everything else belongs to the Epoch.
struct Slot {
  std::uint64_t batch = 0;  // in the plan
  std::uint64_t first = 0;  // first position
  std::uint64_t bucket = 0;
  std::uint64_t rows = 0;
  std::uint64_t grain = 1;     // most rows of a ticket
  RowTickets tickets;          // any thread
  bool complete = false;       // no ticket is out: settle() was told
  bool judged = false;         // complete once, and every earlier slot resolved
  bool resolved = false;       // every row has its sample or its error
  std::uint64_t refilled = 0;  // positions taken from the end of the order, once resolved
  std::shared_ptr<memory::Lease> lease;
  std::atomic<std::uint64_t> seen_spare{0};  // Allocator::spare_pages() when it was asked for pages last
  std::shared_ptr<const batch::BatchLayout> layout;
  std::shared_ptr<const plan::Plan> plan;  // nullptr: the order is given
  bool is_placed = false;                  // all samples are known since it was opened
  std::vector<std::uint64_t> samples;      // per row, once placed
  std::vector<std::uint64_t> draws;        // per row: what its randomness is keyed by
  std::vector<BadRow> failures;            // rows that still need a refill, or all of them with kRaise and kReport
  std::vector<BadSample> bad;              // what to log when the batch is delivered
};

// Rows to fill: one, or some that follow each other, whose samples are slot->samples[row] and on once placed.
struct Ticket {
  std::shared_ptr<Slot> slot;
  std::uint64_t row = 0;
  std::uint64_t rows = 1;
  bool is_refill = false;  // its sample is known, and not the plan's

  // Says which samples the rows are of, for which nothing but the ticket must be held: it is what takes time.
  void place() const;
  // Goes on to the next rows of the batch. false: there is none to take.
  bool advance();
  std::uint64_t sample() const { return slot->samples[row]; }  // of the first, once placed
};

// What came of a row.
struct Outcome {
  std::uint64_t sample = 0;    // that fills the row: the ticket's, or its substitute
  std::optional<Error> error;  // the row is not filled
  std::vector<BadSample> bad;  // replaced samples
  bool is_plain() const { return !error && bad.empty(); }
};

// Not thread-safe: the pipeline calls it under its lock. Threads that still have tickets of an epoch that is gone get
// no further ones.
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
  };
  Epoch(const Config& config, const BadSamplePolicy& policy);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  // The first row to hand out in an open slot, or a refill; nullopt: none is left.
  std::optional<Ticket> take_ticket();
  bool has_refill() const { return !refills_.empty(); }
  // With Config::given: the samples of the next batch, at most batch_size of them; and that no more will follow.
  void give(std::vector<GivenSample> samples) { given_.push_back(std::move(samples)); }
  void end_giving() { all_given_ = true; }
  bool can_open() const;                             // another batch in the plan?
  Slot& open(std::shared_ptr<memory::Lease> lease);  // Requires: can_open(); the caller gives it a layout
  // What came of a row, where it is not its own sample. Before the row is finished.
  void note(Slot& slot, std::uint64_t row, Outcome outcome);
  // The last row of a slot was finished. Settles complete slots in batch order, so that refills do not depend on which
  // of them was complete first.
  void settle(Slot& completed);

  // The next complete slot to deliver, removed from the epoch; nullptr: none yet.
  std::shared_ptr<Slot> take_ready();
  bool over() const;  // nothing left to deliver
  std::size_t open_slots() const { return slots_.size(); }
  std::size_t ready_slots() const;
  const std::shared_ptr<Slot>& oldest() const { return slots_.front(); }
  std::uint64_t oldest_batch() const { return slots_.empty() ? next_open_ : slots_.front()->batch; }  // not delivered

  std::uint64_t epoch() const { return config_.epoch; }
  // Does this epoch, of which nothing was delivered, give just what `other` would from its start?
  bool delivers_as(const Epoch& other) const;
  // What was delivered so far, as a plan of the rest needs to know it.
  std::uint64_t position() const { return plan_->begin_of(next_batch_); }
  std::vector<Positions> delivered() const;
  std::uint64_t left_out() const { return config_.plan.left_out + refilled_; }
  // A batch's number in the epoch, counted in batches of this size from its beginning.
  std::uint64_t index_of(std::uint64_t batch) const;
  const plan::Plan& plan() const { return *plan_; }

 private:
  bool refill(const std::shared_ptr<Slot>& slot);
  void log_bad(Slot& slot, std::uint64_t sample, Error error);
  std::uint64_t deliverable_rows(const Slot& slot) const;
  bool safe_out_of_order(const Slot& slot) const;

  Config config_;
  std::shared_ptr<const plan::Plan> plan_;
  const BadSamplePolicy& policy_;
  std::uint64_t end_;                        // positions from here on are not delivered: refills took them
  std::uint64_t next_open_ = 0;              // next batch to open
  std::deque<std::shared_ptr<Slot>> slots_;  // open, in batch order
  std::deque<Ticket> refills_;
  std::set<std::uint64_t> delivered_ahead_;
  std::uint64_t next_batch_ = 0;                // lowest one not delivered
  std::uint64_t refilled_ = 0;                  // as of the batches delivered
  std::deque<std::vector<GivenSample>> given_;  // not opened yet
  bool all_given_ = false;
};

}  // namespace feedline::pipeline
