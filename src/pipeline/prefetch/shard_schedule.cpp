// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/shard_schedule.h"

#include <algorithm>
#include <utility>

namespace feedline::pipeline {

using plan::ShardUse;

ShardSchedule::ShardSchedule(const PipelinePlan& plan, std::vector<std::uint64_t> shard_ends, std::uint64_t slack)
    : plan_(plan), ends_(std::move(shard_ends)), slack_(slack) {
  now_ = uses_of(0);
  next_ = uses_of(1);
  size_ = plan::make_order(plan_.order, 0)->size();
  const auto is_part = [this](const ShardUse& use) { return use.end - use.first < size_; };
  // Blocks of all shards are permuted together, so most shards are in use during most of the epoch.
  const bool is_by_blocks = plan_.order.shard_window > 0 && plan_.order.shard_ends && *plan_.order.shard_ends != ends_;
  walks_ = !is_by_blocks && std::ranges::any_of(now_.shards, is_part);
}

ShardSchedule::Uses ShardSchedule::uses_of(std::uint64_t epoch) const {
  Uses uses{epoch, plan::make_order(plan_.order, epoch)->shard_uses(ends_), {}};
  for (std::size_t shard = 0; shard < uses.shards.size(); ++shard)
    if (uses.shards[shard].first < uses.shards[shard].end) uses.by_first.push_back(shard);
  std::ranges::stable_sort(uses.by_first, {}, [&](std::size_t shard) { return uses.shards[shard].first; });
  return uses;
}

void ShardSchedule::go_to(std::uint64_t epoch, const plan::Plan& plan, std::uint64_t batch) {
  if (epoch != now_.epoch) {
    const bool goes_on = epoch == now_.epoch + 1 && position_ > 0;
    before_ = goes_on ? std::move(now_.shards) : std::vector<ShardUse>();
    now_ = epoch == next_.epoch ? std::exchange(next_, {}) : uses_of(epoch);
    next_ = uses_of(epoch + 1);
  }
  batches_begin_ = plan.begin_of(0);
  position_ = plan.begin_of(batch);
}

// No reader can be before the position at which the plan begins.
bool ShardSchedule::may_be_read_behind(std::size_t shard) const {
  const ShardUse use = now_.shards[shard];
  if (position_ >= use.end && use.end > std::max(use.first, batches_begin_) && position_ - use.end < slack_)
    return true;
  if (before_.empty()) return false;
  const ShardUse past = before_[shard];
  return past.end > past.first && size_ - past.end + position_ < slack_;
}

std::uint64_t ShardSchedule::until(std::size_t shard) const {
  const ShardUse now = now_.shards[shard], next = next_.shards[shard];
  if (may_be_read_behind(shard)) return 0;
  if (position_ < now.end) return now.first - std::min(now.first, position_);
  return next.first < next.end ? size_ - position_ + next.first : kNever;
}

bool ShardSchedule::is_past(std::size_t shard) const {
  const ShardUse now = now_.shards[shard];
  return !may_be_read_behind(shard) && (position_ >= now.end || position_ < now.first);
}

// A rank has `batch_rows` consecutive positions in each global batch, unless samples are interleaved across ranks.
bool ShardSchedule::has_rows_in(const ShardUse& use, std::uint64_t batches_begin) const {
  const std::uint64_t whole = plan_.ranks.batch_rows * plan_.ranks.world_size;
  const std::uint64_t full = batches_begin + (size_ - std::min(size_, batches_begin)) / whole * whole;
  const bool take_turns = plan_.order.repeat > 1;
  if (plan_.ranks.world_size == 1 || take_turns || use.end - use.first >= whole || use.end > full) return true;
  const std::uint64_t first = std::max(use.first, batches_begin) - batches_begin,
                      end = use.end - std::min(use.end, batches_begin);
  for (std::uint64_t batch = first / whole; batch * whole < end; ++batch) {
    const std::uint64_t mine = batch * whole + plan_.ranks.rank * plan_.ranks.batch_rows;
    if (mine < end && mine + plan_.ranks.batch_rows > first) return true;
  }
  return false;
}

std::vector<std::size_t> ShardSchedule::wanted(std::size_t ahead, bool goes_on) const {
  std::vector<std::size_t> shards;
  for (const std::size_t shard : now_.by_first) {
    const ShardUse& use = now_.shards[shard];
    if (use.end <= position_ || !has_rows_in(use, batches_begin_)) continue;
    if (use.first > position_ && ahead-- == 0) return shards;
    shards.push_back(shard);
  }
  for (const std::size_t shard : next_.by_first) {
    if (!goes_on || ahead == 0) break;
    if (!has_rows_in(next_.shards[shard], 0)) continue;
    --ahead;
    if (std::ranges::find(shards, shard) == shards.end()) shards.push_back(shard);
  }
  return shards;
}

std::uint64_t ShardSchedule::next_change() const {
  std::uint64_t next = size_;
  const auto consider = [&](std::uint64_t position) {
    if (position > position_) next = std::min(next, position);
  };
  for (const ShardUse& use : now_.shards) {
    consider(use.first);
    consider(use.end);
    consider(use.end + slack_);
  }
  for (const ShardUse& use : before_)
    if (use.end + slack_ > size_) consider(use.end + slack_ - size_);
  return next;
}

}  // namespace feedline::pipeline
