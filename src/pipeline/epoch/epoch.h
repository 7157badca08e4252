// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of one epoch, without threads or locks: the batches that are being filled, and the rows that no thread has
// taken.

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "feedline/loader.h"
#include "pipeline/epoch/bad_sample_policy.h"
#include "pipeline/epoch/slot.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// Not thread-safe. This class is used under the pipeline's lock, so it neither scans lists nor allocates. Threads with
// tickets of an abandoned epoch receive no further tickets.
class Epoch {
 public:
  struct Config {
    std::uint64_t epoch = 0;
    std::shared_ptr<const plan::Order> order;
    plan::PlanConfig plan;
    bool in_order = true;
    plan::Selection selection;    // that `order` was made with
    bool given = false;           // batches come from give() instead of the plan
    std::uint64_t grain = 1;      // maximum rows per ticket
    bool assign_at_open = false;  // a batch's samples must be known when it opens, not ticket by ticket
    bool prepares = false;        // final slots need make_ready(): see take_final()
  };
  Epoch(const Config& config, const BadSamplePolicy& policy);
  ~Epoch();
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  // Returns the next rows of an open slot, or a refill; nullopt if there are none.
  std::optional<Ticket> take_ticket();
  bool has_refill() const { return refill_.has_value(); }
  // With Config::given: adds the samples of the next batch, at most batch_rows; end_giving() marks the last one.
  void give(std::list<std::vector<GivenSample>> batch) { given_.splice(given_.end(), batch); }
  void end_giving() { all_given_ = true; }
  bool can_open() const;  // the plan has another batch
  // Assigns the next batch to the slot. Requires: can_open(), and the slot was made for most_rows() rows. The slot's
  // rows become available when the caller has assigned the slot, set its layout and resumed its tickets.
  void claim(const std::shared_ptr<Slot>& slot);
  std::uint64_t most_rows() const { return config_.plan.batch_rows; }
  bool prepares() const { return config_.prepares; }
  // Returns whether take_ticket() found no rows only because the next ones are still being prepared.
  bool rows_follow() const { return drained_ != slots_.end() && (*drained_)->tickets.is_paused(); }
  // Records the outcome of a row if it does not contain its own sample. Must be called before the row is reported as
  // finished.
  void note(Slot& slot, std::uint64_t row, Outcome outcome);
  // Called when the last row of a slot is finished. Settles complete slots in batch order, so that refills do not
  // depend on the order of completion.
  void settle(Slot& completed);
  // With Config::prepares: returns a list of the slots that became final since the last call, or nullptr. The list is
  // linked by Slot::Prepared, whose `rows` is the number of rows to deliver. The caller prepares each slot without the
  // lock and then calls note_ready().
  std::shared_ptr<Slot> take_final() { return std::move(final_); }
  void note_ready(Slot& slot);

  // Removes and returns the next slot to deliver; nullptr if none is ready.
  std::shared_ptr<Slot> take_ready();
  bool over() const;  // everything was delivered
  std::size_t open_slots() const { return slots_.size(); }
  std::size_t ready_slots() const { return config_.prepares ? ready_ : resolved_; }
  std::uint64_t variable_bytes() const { return variable_bytes_; }  // variable-size fields of ready slots
  const std::shared_ptr<Slot>& oldest() const { return slots_.front(); }
  std::uint64_t oldest_batch() const {
    return slots_.empty() ? next_open_ : slots_.front()->batch;
  }  // oldest not
     // delivered

  std::uint64_t epoch() const { return config_.epoch; }
  // Returns whether this epoch, which has not delivered anything, delivers the same as `other` does from its start.
  bool delivers_as(const Epoch& other) const;
  // Describes the samples delivered so far, in the form needed to plan the rest.
  std::uint64_t position() const { return plan_->begin_of(next_batch_); }
  std::vector<Positions> delivered(std::vector<Positions> memory = {}) const;  // reuses the memory of its argument
  std::uint64_t left_out() const { return config_.plan.left_out + refilled_; }
  // Returns a batch's number in the epoch, in batches of the current size from the epoch's start.
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
  Slots::iterator next_ready();  // end() if none is ready

  Config config_;
  std::shared_ptr<const plan::Plan> plan_;
  const BadSamplePolicy& policy_;
  std::uint64_t end_;            // positions from here on were used by refills and are not delivered
  std::uint64_t next_open_ = 0;  // next batch to open
  Slots slots_;                  // open, in batch order
  // These iterators avoid scanning all slots: slots before drained_ have no rows left, and slots before unresolved_ are
  // resolved.
  Slots::iterator drained_ = slots_.end(), unresolved_ = slots_.end();
  std::size_t resolved_ = 0, complete_ = 0;  // counts of slots; complete_ excludes resolved ones
  std::size_t ready_ = 0;                    // resolved slots that are ready; with Config::prepares
  std::uint64_t variable_bytes_ = 0;
  std::shared_ptr<Slot> final_;                 // first of the list not yet taken
  std::uint64_t unsettled_rows_ = 0;            // of unresolved slots
  std::optional<Ticket> refill_;                // for the first unresolved slot: one at a time
  std::vector<std::uint64_t> delivered_ahead_;  // a min-heap of batches
  std::uint64_t next_batch_ = 0;                // lowest not delivered
  std::uint64_t refilled_ = 0;                  // as of the delivered batches
  std::list<std::vector<GivenSample>> given_;   // not opened yet
  bool all_given_ = false;
};

}  // namespace feedline::pipeline
