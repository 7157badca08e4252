// SPDX-License-Identifier: Apache-2.0
#pragma once

// When each shard is read from next, as seen from a place in the plan: what a cache of whole shards keeps, and what is
// fetched into it. Positions are the order's, so that all ranks that share a cache agree.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/pipeline_plan.h"
#include "plan/order.h"
#include "plan/plan.h"

namespace feedline::pipeline {

// Not thread-safe. The plan outlives it.
class ShardTimetable {
 public:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  // shard_ends: samples up to and with each shard. slack: samples that may still be read behind the latest one, here or
  // by ranks that are behind this one.
  ShardTimetable(const PipelinePlan& plan, std::vector<std::uint64_t> shard_ends, std::uint64_t slack);

  // Batch `batch` of this plan is read, in this epoch. Of the shards a plan is the same whatever of it was delivered.
  void go_to(std::uint64_t epoch, const plan::Plan& plan, std::uint64_t batch);

  // Is any shard read from for less than the whole epoch?
  bool walks() const { return walks_; }
  // Samples that are read until shard is needed, in this epoch or the next one; 0: it is being read from, also by who
  // lags behind; kNever: in neither.
  std::uint64_t until(std::size_t shard) const;
  // Was it needed in this epoch, and is not any more, also by who lags behind?
  bool is_past(std::size_t shard) const;
  // Shards with samples of this rank that are being read from, then those to come, at most `ahead` of them, in the
  // order in which they are needed. goes_on: also of the next epoch.
  std::vector<std::size_t> wanted(std::size_t ahead, bool goes_on) const;
  // From which place of the epoch on one of the above is another one. Positions of the order; at most its size.
  std::uint64_t next_change() const;
  std::uint64_t position() const { return position_; }

 private:
  // One epoch's.
  struct Uses {
    std::uint64_t epoch = 0;
    std::vector<plan::ShardUse> shards;
    std::vector<std::size_t> by_first;  // shards that are used, in the order in which they are
  };
  Uses uses_of(std::uint64_t epoch) const;
  bool may_be_read_behind(std::size_t shard) const;
  bool has_rows_in(const plan::ShardUse& use, std::uint64_t batches_begin) const;

  const PipelinePlan& plan_;
  std::vector<std::uint64_t> ends_;
  std::uint64_t slack_;
  std::uint64_t size_ = 0;  // positions of an epoch
  Uses now_, next_;
  std::vector<plan::ShardUse> before_;  // of the epoch that was read until then; empty: none was
  std::uint64_t position_ = 0;          // where the batch begins that is read
  std::uint64_t batches_begin_ = 0;     // where the first batch of the plan begins
  bool walks_ = false;
};

}  // namespace feedline::pipeline
