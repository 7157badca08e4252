// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes when each shard is next needed, seen from a position in the plan: decides what a cache of whole shards
// retains and fetches. Positions are the order's, so all ranks that share a cache agree.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/planning/pipeline_plan.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// Not thread-safe. The plan must outlive it.
class ShardSchedule {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // shard_ends: cumulative number of samples up to the end of each shard. slack: samples before the latest one that may
  // still be read, by this rank or by ranks that lag.
  ShardSchedule(const PipelinePlan& plan, std::vector<std::uint64_t> shard_ends, std::uint64_t slack);

  // Sets the position to batch `batch` of this plan in this epoch. The shards of a plan do not depend on how much was
  // delivered.
  void go_to(std::uint64_t epoch, const plan::Plan& plan, std::uint64_t batch);

  // Returns true if any shard is read from only during part of the epoch.
  bool walks() const { return walks_; }
  // Returns the number of samples read until the shard is needed, in this epoch or the next; 0 while it is being read,
  // also by lagging ranks; kNever if it is needed in neither.
  std::uint64_t until(std::size_t shard) const;
  // Returns true if it was needed in this epoch and no longer is, also by lagging ranks.
  bool is_past(std::size_t shard) const;
  // Returns the shards with samples of this rank that are being read, then up to `ahead` later ones, in the order of
  // need. goes_on: include those of the next epoch.
  std::vector<std::size_t> wanted(std::size_t ahead, bool goes_on) const;
  // Returns the next position in the epoch at which one of the results above changes. Positions of the order; at most
  // its size.
  std::uint64_t next_change() const;
  std::uint64_t position() const { return position_; }

 private:
  // The positions at which shards are used in one epoch.
  struct Uses {
    std::uint64_t epoch = 0;
    std::vector<plan::ShardUse> shards;
    std::vector<std::size_t> by_first;  // used shards, ordered by first use
  };
  Uses uses_of(std::uint64_t epoch) const;
  bool may_be_read_behind(std::size_t shard) const;
  bool has_rows_in(const plan::ShardUse& use, std::uint64_t batches_begin) const;

  const PipelinePlan& plan_;
  std::vector<std::uint64_t> ends_;
  std::uint64_t slack_;
  std::uint64_t size_ = 0;  // positions in an epoch
  Uses now_, next_;
  std::vector<plan::ShardUse> before_;  // of the previous epoch; empty if there was none
  std::uint64_t position_ = 0;          // start of the current batch
  std::uint64_t batches_begin_ = 0;     // start of the plan's first batch
  bool walks_ = false;
};

}  // namespace feedline::pipeline
