// SPDX-License-Identifier: Apache-2.0
#pragma once

// A batch that is being filled, the rows that a thread has taken, and the outcome of a row.
//
// A slot passes through these states. All changes except the first two happen under the pipeline's lock, and Epoch
// tracks them:
//
// - claimed: the slot has its position in the epoch, and its thread prepares it without the lock. No row can be taken.
// - open: some rows are untaken or in progress; RowTickets tracks them without the lock.
// - complete: all rows were tried. The thread that finished the last row reports this state (Epoch::settle).
// - judged: every earlier slot is resolved, so it is known which of this slot's failed rows still count. A slot is
//   judged once.
// - resolved: every row has its sample or its error. With OnError::kSkip, a judged slot may first return to open, to
//   refill one row at a time from the end of the order.
//
// In two more states, the memory of the slot is prepared for delivery:
//
// - final: the rows will not change any more, because the slot is resolved, or complete and out of reach of refills.
// - ready: rows are mixed, variable-size fields are composed, and device work has started. The thread that made the
//   slot final does this work, if there is any, without the lock (BatchMemory::make_ready).
//
// A resolved slot that is ready is removed from its epoch and delivered; with out-of-order delivery, so is a complete
// slot that no refill can reach. A slot in an abandoned epoch is closed regardless of its state: it hands out no
// further rows, and exists until all threads have finished their rows.

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "batch/batch_layout.h"
#include "batch/composed.h"
#include "feedline/loader.h"
#include "memory/allocator.h"
#include "memory/row.h"
#include "pipeline/epoch/row_tickets.h"
#include "pipeline/epoch/variable_size_items.h"
#include "plan/plan.h"
#include "transform/mixup.h"

namespace feedline::pipeline {

// The error of a row's sample. Created outside the lock as a list with one element, because entries may only be spliced
// under the lock.
struct BadEntry {
  std::uint64_t row = 0;
  BadSample sample;  // the epoch sets its batch and action
};
using BadEntries = std::list<BadEntry>;

// A thread may write the memory, samples and draws of rows that it has a ticket for; all other members belong to the
// Epoch.
struct Slot {
  // The parts of a slot, apart from its rows, that are prepared when it is final.
  struct Prepared {
    std::weak_ptr<Slot> slot;                              // its owner
    std::uint64_t used_up = 0;                             // last rows, consumed by mixing and not delivered
    std::vector<transform::RowMix> mixed;                  // for the remaining rows, if the device mixes them
    std::unique_ptr<VariableSizeItems> items;              // of variable-size fields, until composed; or nullptr
    batch::Composed composed;                              // result of composing them
    std::array<std::shared_ptr<const Ready>, 2> arrivals;  // of the lease and of composed fields, on the device
    std::optional<Error> error;                            // error of make_ready()
    std::shared_ptr<Slot> next_final;                      // see Epoch::take_final()
  };

  // Creates a slot for up to `rows` rows, including its list node for an epoch. Called without the lock. prepares: as
  // in Epoch::Config.
  static std::shared_ptr<Slot> make(std::uint64_t rows, bool prepares = false);
  // Called without the lock by the thread that claimed the slot: sets its samples, if they must be known before its
  // rows are filled.
  void assign_samples();
  // Sets the samples of these rows from the plan.
  void assign_samples(std::uint64_t row, std::uint64_t count);
  // Called by the thread that has taken the row: sets the destination of each field; `found` is reused.
  void rows_at(std::uint64_t row, std::vector<memory::Row>& found) {
    const bool has_variable = prepared && prepared->items;
    layout->rows_at(lease ? lease->data() : nullptr,
                    has_variable ? std::span(prepared->items->all) : std::span<memory::ListItem>(), row, found);
  }

  std::uint64_t batch = 0;  // in the plan
  std::uint64_t first = 0;  // first position
  std::uint64_t bucket = 0;
  std::uint64_t rows = 0;
  std::uint64_t grain = 1;                              // maximum rows of a ticket
  RowTickets tickets;                                   // any thread
  bool complete = false;                                // no tickets are out: settle() was called
  bool judged = false;                                  // complete at least once, and every earlier slot resolved
  bool resolved = false;                                // every row has its sample or its error
  bool is_final = false;                                // rows will not change any more
  bool ready = false;                                   // it can be delivered
  std::uint64_t refilled = 0;                           // positions taken from the end of the order, once resolved
  std::shared_ptr<memory::Lease> lease;                 // memory of dense fields; nullptr if there are none
  std::unique_ptr<Prepared> prepared;                   // nullptr: nothing needs to be prepared
  std::atomic<std::uint64_t> seen_spare{0};             // Allocator::spare_pages() when pages were last requested
  std::shared_ptr<const batch::BatchLayout> layout;     // of the filled memory
  std::shared_ptr<const batch::BatchLayout> delivered;  // after device work; nullptr if there is none
  std::shared_ptr<const plan::Plan> plan;               // nullptr: the order is given
  bool is_assigned = false;                             // all samples were set when it opened
  std::list<std::vector<GivenSample>> given;            // the caller's samples, until it is assigned
  std::vector<std::uint64_t> samples;                   // per row, once assigned
  std::unique_ptr<std::uint64_t[]> draws;               // per row, once assigned: keys of its random draws
  BadEntries failures;  // rows that still need a refill, or all of them with kRaise and kReport
  BadEntries bad;       // to log when the batch is delivered
  BadEntries cut_off;   // failures that no longer count: freed with the slot
  std::list<std::shared_ptr<Slot>> node_in_epoch;  // node for the epoch's list, which therefore does not allocate
};

// One or more consecutive rows to fill; their samples start at slot->samples[row] once assigned.
struct Ticket {
  std::shared_ptr<Slot> slot;
  std::uint64_t row = 0;
  std::uint64_t rows = 1;
  bool is_refill = false;  // its sample is set, and differs from the plan's

  // Computes the samples of the rows. The computation takes time and needs only the ticket, not the lock.
  void assign_samples() const;
  // Moves to the next rows of the batch, or returns false if there are none.
  bool advance();
  std::uint64_t sample() const { return slot->samples[row]; }  // of the first, once assigned
};

// The result of filling a row.
struct Outcome {
  std::uint64_t sample = 0;  // fills the row: the ticket's, or its substitute
  BadEntries failed;         // one entry if the row is not filled
  BadEntries replaced;       // one entry: the replaced sample
};

}  // namespace feedline::pipeline
