// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {

Plan::Plan(const PlanConfig& config) : config_(config) {
  FEEDLINE_CHECK(config.size > 0 && config.batch_size > 0 && config.rank < config.world_size);
  if (config.shuffle) {
    // its own key stream: random operations mix seed and epoch in another way (base::Random)
    const std::uint64_t key = base::mix64(base::mix64(config.seed) + config.epoch);
    permutation_.emplace(config.size, key);
  }
  const std::uint64_t ranks = config.world_size;
  const std::uint64_t global_batch = config.batch_size * ranks;
  full_batches_ = config.size / global_batch;
  const std::uint64_t remainder = config.size % global_batch;
  const std::uint64_t least = remainder / ranks;
  const std::uint64_t left_over = remainder % ranks;
  std::uint64_t share = least;
  std::uint64_t before = config.rank * least;  // positions of the remainder that lower ranks hold
  if (config.uneven == Uneven::kPad && left_over > 0) {
    share = least + 1;
    before = config.rank * share;
  } else if (config.uneven == Uneven::kExact) {
    share = least + (config.rank < left_over ? 1 : 0);
    before = config.rank * least + std::min(config.rank, left_over);
  }
  remainder_first_ = full_batches_ * global_batch + before;
  positions_ = full_batches_ * config.batch_size + share;
}

std::uint64_t Plan::batches() const {
  const std::uint64_t full = positions_ / config_.batch_size;
  return full + (!config_.drop_last && positions_ % config_.batch_size != 0 ? 1 : 0);
}

std::uint64_t Plan::sample_at(std::uint64_t position) const {
  FEEDLINE_CHECK(position < positions_);
  const std::uint64_t batch = position / config_.batch_size;
  const std::uint64_t row = position % config_.batch_size;
  std::uint64_t global = batch < full_batches_ ? (batch * config_.world_size + config_.rank) * config_.batch_size + row
                                               : remainder_first_ + (position - full_batches_ * config_.batch_size);
  global %= config_.size;  // only kPad runs past the end: it starts over
  return permutation_ ? (*permutation_)(global) : global;
}

}  // namespace feedline::plan
