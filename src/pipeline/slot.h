// SPDX-License-Identifier: Apache-2.0
#pragma once

// A batch that is being filled, the rows of it that a thread has in hand, and what came of a row.
//
// A slot goes through these states, all but the first two under the pipeline's lock, where Epoch keeps them:
//
//   claimed    it has its place in the epoch, and its thread prepares it without the lock; no row can be taken
//   open       some rows are nobody's yet, or in somebody's hands: RowTickets tells which, without the lock
//   complete   every row was tried: the thread that finished the last one says so (Epoch::settle)
//   judged     every earlier slot is resolved: it is known which of its failed rows still count. Once only
//   resolved   every row has its sample or its error. With OnError::kSkip a judged slot may go back to open first, for
//              one row at a time that is refilled from the end of the order
//
// Beside these goes what its memory needs before it is delivered:
//
//   final      nobody will write a row any more: resolved, or complete where no refill can reach it
//   ready      rows are mixed, late fields are composed, and the device has begun. The thread whose settle() made it
//   final does so,
//              without the lock (BatchMemory::make_ready). Only where there is something to do
//
// A resolved slot that is ready is taken out of its epoch and delivered; out of order a complete one may be, where no
// refill can reach it. A slot of an epoch that was abandoned is closed, in whatever state it is: it gives no further
// rows, and lives as long as somebody fills one of them.

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
#include "pipeline/late_items.h"
#include "pipeline/row_tickets.h"
#include "plan/plan.h"
#include "transform/mixup.h"

namespace feedline::pipeline {

// A sample that its row could not be filled with. In a list of one from the start, which is made without the lock:
// under it, entries only go from list to list.
struct BadEntry {
  std::uint64_t row = 0;
  BadSample sample;  // its batch and action are the epoch's to say
};
using BadEntries = std::list<BadEntry>;

// A thread may write the memory, samples and draws of rows that it has a ticket for; everything else belongs to the
// Epoch.
struct Slot {
  // What a slot has beside its rows that is made ready once it is final.
  struct Prepared {
    std::weak_ptr<Slot> slot;                              // that has it
    std::uint64_t used_up = 0;                             // rows, by mixing: the last ones, which are not delivered
    std::vector<transform::RowMix> mixed;                  // of the rows that are left, where the device mixes them
    std::unique_ptr<LateItems> items;                      // of the late fields, until they are composed; nullptr: none
    batch::Composed composed;                              // what became of them
    std::array<std::shared_ptr<const Ready>, 2> arrivals;  // of the lease and of what is composed, on the device
    std::optional<Error> error;                            // it could not be made ready
    std::shared_ptr<Slot> next_final;                      // see Epoch::take_final()
  };

  // A slot whose place in an epoch is made already, for at most so many rows. Without the lock. prepares: as in
  // Epoch::Config.
  static std::shared_ptr<Slot> make(std::uint64_t rows, bool prepares = false);
  // Without the lock, by the thread that claimed it: its samples, where they are to be known before its rows are.
  void place();
  // From the plan, of these rows.
  void place(std::uint64_t row, std::uint64_t count);
  // By a thread that has the row: where every field of it goes; `places` is reused.
  void rows_at(std::uint64_t row, std::vector<memory::Row>& places) {
    const bool has_late = prepared && prepared->items;
    layout->rows_at(lease ? lease->data() : nullptr,
                    has_late ? std::span(prepared->items->all) : std::span<memory::ListItem>(), row, places);
  }

  std::uint64_t batch = 0;  // in the plan
  std::uint64_t first = 0;  // first position
  std::uint64_t bucket = 0;
  std::uint64_t rows = 0;
  std::uint64_t grain = 1;                              // most rows of a ticket
  RowTickets tickets;                                   // any thread
  bool complete = false;                                // no ticket is out: settle() was told
  bool judged = false;                                  // complete once, and every earlier slot resolved
  bool resolved = false;                                // every row has its sample or its error
  bool is_final = false;                                // nobody will write a row
  bool ready = false;                                   // it can be delivered
  std::uint64_t refilled = 0;                           // positions taken from the end of the order, once resolved
  std::shared_ptr<memory::Lease> lease;                 // of the dense fields; nullptr: there are none
  std::unique_ptr<Prepared> prepared;                   // nullptr: nothing is to be made ready
  std::atomic<std::uint64_t> seen_spare{0};             // Allocator::spare_pages() when it was asked for pages last
  std::shared_ptr<const batch::BatchLayout> layout;     // of what is filled
  std::shared_ptr<const batch::BatchLayout> delivered;  // of what a device makes of it; nullptr: nothing
  std::shared_ptr<const plan::Plan> plan;               // nullptr: the order is given
  bool is_placed = false;                               // all samples are known since it was opened
  std::list<std::vector<GivenSample>> given;            // what was given for it, until it is placed
  std::vector<std::uint64_t> samples;                   // per row, once placed
  std::unique_ptr<std::uint64_t[]> draws;               // per row, once placed: what its randomness is keyed by
  BadEntries failures;  // rows that still need a refill, or all of them with kRaise and kReport
  BadEntries bad;       // what to log when the batch is delivered
  BadEntries cut_off;   // failures that count no more: freed with the slot
  std::list<std::shared_ptr<Slot>> place_in_epoch;  // an element for the epoch's list, which allocates nothing
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
  std::uint64_t sample = 0;  // that fills the row: the ticket's, or its substitute
  BadEntries failed;         // one: the row is not filled
  BadEntries replaced;       // one: by that sample
};

}  // namespace feedline::pipeline
