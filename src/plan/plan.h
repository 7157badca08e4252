// SPDX-License-Identifier: Apache-2.0
#pragma once

// An epoch's order cut into batches for one rank. Pure: the same config gives the same plan on every machine.
//
//   order:  [ batch 0: rank 0 | rank 1 | ... ][ batch 1: rank 0 | rank 1 | ... ] ... [ remainder ]
//
// With G = batch_size * world_size, global batch b holds G positions in a row, a rank's part of it batch_size of them.
// The remainder, fewer than G, is shared out by `uneven`. A plan may begin anywhere in the order, and leave out what
// was delivered already: it then cuts what is left.
//
// Interleaved, the ranks take turns at the positions of a global batch, and of the remainder: rank r has those that
// are r modulo world_size. So what stands side by side in the order goes to different ranks, and the global batches are
// the same.
//
// A BucketOrder is cut into its own batches instead, of different numbers of rows, each of which goes to the ranks in
// equal parts; what is left of it begins and ends at their borders.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/loader.h"
#include "plan/order.h"

namespace feedline::plan {

struct PlanConfig {
  std::uint64_t batch_size = 1;  // with buckets: of the batch with the most rows
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;
  Uneven uneven = Uneven::kPad;
  std::uint64_t begin = 0;           // position of the order
  std::vector<Positions> delivered;  // behind `begin`, ascending, apart from each other
  std::uint64_t left_out = 0;        // positions at the end of the order that do not count
  bool interleaved = false;          // Requires, where it is true: no buckets
};

class Plan {
 public:
  // Requires: batch_size, world_size > 0 and rank < world_size; with buckets, rows that the ranks divide, none of them
  // more than batch_size * world_size.
  Plan(std::shared_ptr<const Order> order, const PlanConfig& config);

  const Order& order() const { return *order_; }
  // Of this rank, a last partial batch included: the rows of batch b have those from b * batch_size on, with buckets
  // not up to the next batch's.
  std::uint64_t positions() const { return positions_; }
  // Of this rank, and of any; drop_last leaves a partial one out.
  std::uint64_t batches() const { return batches(config_.rank); }
  std::uint64_t batches(std::uint64_t rank) const;
  std::uint64_t rows(std::uint64_t batch) const { return rows(batch, config_.rank); }
  std::uint64_t rows(std::uint64_t batch, std::uint64_t rank) const;  // that a rank has in it; none past its end
  std::uint64_t samples(std::uint64_t rank) const;                    // of all its batches
  // The bucket that a batch is of; 0 where there are none.
  std::uint64_t bucket(std::uint64_t batch) const;
  // A global batch's number in the epoch, counted in batches of this size from its beginning.
  std::uint64_t index_of(std::uint64_t batch) const;
  // What stands at this rank's position. Requires: a row of a batch has it.
  Placed at(std::uint64_t position) const;
  // The same of positions from `first` on, all of one batch.
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;

  // Where in the order global batch `batch` begins; at or behind the last: the order's end.
  std::uint64_t begin_of(std::uint64_t batch) const;
  // The positions of the order that global batch `batch` holds, and those delivered before this plan, from `begin` on:
  // what a state has to say besides `begin`.
  void add_positions(std::uint64_t batch, std::vector<Positions>& spans) const;

 private:
  struct Share {
    std::uint64_t first = 0;  // place in what is left
    std::uint64_t rows = 0;
  };
  Share share_of(std::uint64_t rank) const;              // of the remainder
  std::uint64_t place_of(std::uint64_t position) const;  // in what is left
  std::uint64_t order_position(std::uint64_t place) const { return run_at(place).begin; }
  // Positions of the order that stand at this place and the next ones, and at this rank's position and the next ones.
  Positions run_at(std::uint64_t place) const;
  Positions run_from(std::uint64_t position) const;
  void keep_batches(const BucketOrder& buckets);

  std::shared_ptr<const Order> order_;
  PlanConfig config_;
  std::uint64_t global_batch_;
  std::vector<Positions> left_;         // of the order
  std::uint64_t places_ = 0;            // in left_, all together
  const BucketOrder* buckets_;          // the order; nullptr: it has no batches of its own
  std::vector<std::uint64_t> batches_;  // with buckets: those of the order that are left
  std::uint64_t full_batches_;          // global batches without remainder
  std::uint64_t remainder_;             // places behind them
  Share share_;                         // this rank's
  std::uint64_t positions_;
};

// `spans` in ascending order, those that touch joined, without what lies before `begin`.
std::vector<Positions> tidied(std::vector<Positions> spans, std::uint64_t begin);

}  // namespace feedline::plan
