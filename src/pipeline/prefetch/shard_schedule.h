// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes when each shard is needed next, relative to a position in the plan. A cache of whole shards uses this to
// decide which shards to retain and to fetch. Positions refer to the global order, so all ranks that share a cache
// compute the same result.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/planning/pipeline_plan.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// Not thread-safe. The plan must outlive this object.
class ShardSchedule {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // shard_ends: the cumulative number of samples up to the end of each shard. slack: the number of samples before the
  // latest one that may still be read by this rank or by ranks that lag.
  ShardSchedule(const PipelinePlan& plan, std::vector<std::uint64_t> shard_ends, std::uint64_t slack);

  // Sets the position to batch `batch` of this plan in this epoch. The shards of a plan do not depend on how many
  // samples were delivered.
  void go_to(std::uint64_t epoch, const plan::Plan& plan, std::uint64_t batch);

  // Returns whether the order reads shard by shard, so that shards are needed only during a part of the epoch.
  bool walks() const { return walks_; }
  // Returns the number of samples that are read before the shard is needed, in this epoch or the next: 0 while any
  // rank, including lagging ones, is reading it; kNever if it is needed in neither epoch.
  std::uint64_t until(std::size_t shard) const;
  // Returns whether the shard was needed earlier in this epoch and is no longer needed by any rank, including lagging
  // ones.
  bool is_past(std::size_t shard) const;
  // Returns the shards with samples for this rank that are being read, and then up to `ahead` later ones, in the order
  // in which they are needed. goes_on: include shards of the next epoch.
  std::vector<std::size_t> wanted(std::size_t ahead, bool goes_on) const;
  // Returns the next position in the epoch at which one of the results above changes. The result is a position in the
  // global order, at most the size of the order.
  std::uint64_t next_change() const;
  std::uint64_t position() const { return position_; }

 private:
  // The positions at which an epoch uses each shard.
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
