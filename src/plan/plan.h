// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides an epoch's order into batches for one rank. Pure: the same config gives the same plan on every machine.
//
//   order:  [ batch 0: rank 0 | rank 1 | ... ][ batch 1: rank 0 | rank 1 | ... ] ... [ remainder ]
//
// With G = batch_rows * world_size, global batch b has G consecutive positions, batch_rows of them for each rank.
// `uneven` determines how the remainder, fewer than G, is shared. A plan may begin anywhere in the order and omit
// samples that were already delivered: the plan then divides the rest.
//
// Interleaved, the ranks take turns at the positions of a global batch, and of the remainder: rank r has those that are
// r modulo world_size. Neighbours in the order therefore go to different ranks, and the global batches are the same.
//
// A BucketOrder keeps its own batches, of different numbers of rows, each divided evenly among the ranks; the
// undelivered parts begin and end at their boundaries.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "feedline/loader.h"
#include "plan/order.h"

namespace feedline::plan {

struct PlanConfig {
  std::uint64_t batch_rows = 1;  // rows of a full batch on one rank; with buckets: of the batch with the most rows
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;
  Uneven uneven = Uneven::kPad;
  std::uint64_t begin = 0;           // position in the order
  std::vector<Positions> delivered;  // after `begin`, ascending and disjoint
  std::uint64_t left_out = 0;        // positions at the end of the order to omit
  bool interleaved = false;          // Requires, if true: no buckets
};

class Plan {
 public:
  // Requires: batch_rows, world_size > 0 and rank < world_size; with buckets, numbers of rows that are multiples of
  // world_size and at most batch_rows * world_size.
  Plan(std::shared_ptr<const Order> order, const PlanConfig& config);

  const Order& order() const { return *order_; }
  // This rank's positions, including a partial last batch: the rows of batch b start at b * batch_rows, and with
  // buckets may end before the next batch's.
  std::uint64_t positions() const { return positions_; }
  // Batches of this rank, and of any rank; without a partial one if drop_last.
  std::uint64_t batches() const { return batches(config_.rank); }
  std::uint64_t batches(std::uint64_t rank) const;
  std::uint64_t rows(std::uint64_t batch) const { return rows(batch, config_.rank); }
  std::uint64_t rows(std::uint64_t batch, std::uint64_t rank) const;  // of a rank; 0 after its last batch
  std::uint64_t samples(std::uint64_t rank) const;                    // in all its batches
  // Returns the bucket of a batch; 0 if there are no buckets.
  std::uint64_t bucket(std::uint64_t batch) const;
  // Returns a global batch's number in the epoch, counted in batches of this size from the start.
  std::uint64_t index_of(std::uint64_t batch) const;
  // Returns the sample at this rank's position. Requires: the position is in a batch.
  Placed at(std::uint64_t position) const;
  // The same for positions starting at `first`, all in one batch.
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;

  // Returns the position in the order where global batch `batch` begins; after the last: the order's end.
  std::uint64_t begin_of(std::uint64_t batch) const;
  // Adds the order's positions in global batch `batch`, and those delivered before this plan, from `begin` on: the data
  // of a state other than `begin`.
  void add_positions(std::uint64_t batch, std::vector<Positions>& spans) const;

 private:
  struct Share {
    std::uint64_t first = 0;  // index in the remaining positions
    std::uint64_t rows = 0;
  };
  Share share_of(std::uint64_t rank) const;              // of the remainder
  std::uint64_t place_of(std::uint64_t position) const;  // index in the remaining positions
  std::uint64_t order_position(std::uint64_t place) const { return run_at(place).begin; }
  // Consecutive positions of the order starting at this place, and at this rank's position.
  Positions run_at(std::uint64_t place) const;
  Positions run_from(std::uint64_t position) const;
  void keep_batches(const BucketOrder& buckets);

  std::shared_ptr<const Order> order_;
  PlanConfig config_;
  std::uint64_t global_batch_;
  std::vector<Positions> left_;         // in the order
  std::uint64_t places_ = 0;            // total in left_
  const BucketOrder* buckets_;          // the order; nullptr if it has no batches
  std::vector<std::uint64_t> batches_;  // with buckets: remaining batches of the order
  std::uint64_t full_batches_;          // global batches without remainder
  std::uint64_t remainder_;             // places after them
  Share share_;                         // this rank's
  std::uint64_t positions_;
};

// Returns `spans` in ascending order, with adjacent ones merged and parts before `begin` removed.
std::vector<Positions> tidied(std::vector<Positions> spans, std::uint64_t begin);

}  // namespace feedline::plan
