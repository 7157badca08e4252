// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which sample stands where in an epoch, for one rank. Pure: the same config gives the same plan on every machine.
//
//   global order:  [ batch 0: rank 0 | rank 1 | ... ][ batch 1: rank 0 | rank 1 | ... ] ... [ remainder ]
//
// Global batch b holds positions [b * G, (b + 1) * G) with G = batch_size * world_size; a rank's part of it are
// batch_size positions in a row. The remainder, fewer than G, is shared out by `uneven`.

#include <cstdint>
#include <optional>

#include "feedline/loader.h"
#include "plan/permutation.h"

namespace feedline::plan {

struct PlanConfig {
  std::uint64_t size = 0;  // samples in the data set
  std::uint64_t batch_size = 1;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  bool shuffle = false;
  bool drop_last = false;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Uneven uneven = Uneven::kPad;
};

class Plan {
 public:
  // Requires: size, batch_size, world_size > 0 and rank < world_size.
  explicit Plan(const PlanConfig& config);

  std::uint64_t positions() const { return positions_; }  // of this rank, a last partial batch included
  std::uint64_t batches() const;                          // of this rank; drop_last leaves a partial one out
  // Index in the data set of this rank's position. Requires: position < positions().
  std::uint64_t sample_at(std::uint64_t position) const;

 private:
  PlanConfig config_;
  std::optional<Permutation> permutation_;
  std::uint64_t full_batches_;     // global batches without remainder
  std::uint64_t remainder_first_;  // global position where this rank's share of the remainder starts
  std::uint64_t positions_;
};

}  // namespace feedline::plan
