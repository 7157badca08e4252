// SPDX-License-Identifier: Apache-2.0
#pragma once

// Divides an epoch's order into batches for one rank. The same config produces the same plan on every machine.
//
//   order:  [ batch 0: rank 0 | rank 1 | ... ][ batch 1: rank 0 | rank 1 | ... ] ... [ remainder ]
//
// If G = batch_rows * world_size, global batch b consists of G consecutive positions, of which each rank has
// batch_rows. `uneven` determines how the remainder (fewer than G positions) is divided. A plan may begin at any
// position of the order, and omit samples that were already delivered: it then divides the remaining ones.
//
// If the plan is interleaved, ranks take turns at the positions of a global batch and of the remainder: rank r has the
// positions that equal r modulo world_size. Neighbours in the order therefore go to different ranks, while the global
// batches are the same.
//
// The batches of a BucketOrder are not changed: they have different numbers of rows, and each is divided evenly among
// the ranks. Ranges that were already delivered begin and end at the boundaries of these batches.

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
  // Requires: batch_rows, world_size > 0 and rank < world_size; with buckets, each bucket's number of rows is a
  // multiple of world_size and at most batch_rows * world_size.
  Plan(std::shared_ptr<const Order> order, const PlanConfig& config);

  const Order& order() const { return *order_; }
  // The number of this rank's positions, including a partial last batch. The rows of batch b begin at b * batch_rows.
  // With buckets, they may end before the next batch begins.
  std::uint64_t positions() const { return positions_; }
  // The number of batches for this rank, and for any rank; with drop_last, partial batches do not count.
  std::uint64_t batches() const { return batches(config_.rank); }
  std::uint64_t batches(std::uint64_t rank) const;
  std::uint64_t rows(std::uint64_t batch) const { return rows(batch, config_.rank); }
  std::uint64_t rows(std::uint64_t batch, std::uint64_t rank) const;  // of a rank; 0 after its last batch
  std::uint64_t samples(std::uint64_t rank) const;                    // in all its batches
  // Returns the bucket of a batch; 0 if there are no buckets.
  std::uint64_t bucket(std::uint64_t batch) const;
  // Returns the number of a global batch in the epoch, counted from the start of the epoch in batches of this size.
  std::uint64_t index_of(std::uint64_t batch) const;
  // Returns the sample at this rank's position. Requires: the position is in a batch.
  OrderedSample at(std::uint64_t position) const;
  // Like at(), for positions that start at `first` and are in the same batch.
  void place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const;

  // Returns the position in the order at which global batch `batch` begins; for the batch after the last one, the end
  // of the order.
  std::uint64_t begin_of(std::uint64_t batch) const;
  // Appends the order's positions in global batch `batch`, and those from position `begin` on that were delivered
  // before this plan. Together with `begin`, these positions are the contents of a state.
  void add_positions(std::uint64_t batch, std::vector<Positions>& spans) const;

 private:
  struct Share {
    std::uint64_t first = 0;  // index in the remaining positions
    std::uint64_t rows = 0;
  };
  Share share_of(std::uint64_t rank) const;                 // of the remainder
  std::uint64_t find_sample(std::uint64_t position) const;  // index in the remaining positions
  std::uint64_t order_position(std::uint64_t index) const { return run_at(index).begin; }
  // Return consecutive positions of the order starting at this position of the order or of the rank.
  Positions run_at(std::uint64_t index) const;
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

// Returns `spans` in ascending order: adjacent spans are merged, and parts before `begin` are removed.
std::vector<Positions> tidied(std::vector<Positions> spans, std::uint64_t begin);

}  // namespace feedline::plan
