// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_order.h"

#include <utility>

#include "pipeline/planning/pipeline_plan.h"

namespace feedline::pipeline {

bool FetchOrder::begin(bool goes_on, Past& past, std::uint64_t epoch) {
  goes_on_ = goes_on;
  next_.is_next_epoch = false;
  if (!plan_.is_given) return false;
  std::swap(past.given, given_.samples);  // restarts with its first batch
  given_.first = 0;
  next_ = {.epoch = epoch, .is_given = true};
  return true;
}

void FetchOrder::give(std::vector<GivenSample> samples, std::uint64_t oldest) {
  for (; given_.first < oldest && !given_.samples.empty(); ++given_.first) given_.samples.pop_front();
  given_.samples.push_back(std::move(samples));
}

// Returns whether the order has passed the row, in the same epoch or by continuing in the next one.
bool FetchOrder::is_before_next(const PlanRow& row, const std::shared_ptr<const plan::Plan>& plan) const {
  if (next_.is_next_epoch && !row.is_given && row.epoch + 1 == next_.epoch) return true;
  const bool is_same_order = plan == next_.plan && row.is_given == next_.is_given;
  return is_same_order && std::pair(row.batch, row.row) < std::pair(next_.batch, next_.row);
}

bool FetchOrder::missed(const PlanRow& row, Past& past) {
  if ((row.plan == nullptr || *row.plan == nullptr) && !row.is_given) return false;
  auto plan = row.plan != nullptr ? *row.plan : nullptr;
  if (is_before_next(row, plan) && ++misses_ <= slack_) return false;
  misses_ = 0;
  past.plan = std::move(next_.plan);
  next_ = {row.epoch, std::move(plan), row.batch, row.row + 1, false, row.is_given};
  return true;
}

void FetchOrder::forget(Past& past) {
  past.plan = std::move(next_.plan);
  next_ = {};
}

// Returns nullopt at the end of the samples that the caller has given.
std::optional<FetchOrder::Row> FetchOrder::next_given() {
  if (next_.batch < given_.first) next_ = {.epoch = next_.epoch, .batch = given_.first, .is_given = true};
  for (; next_.batch - given_.first < given_.samples.size(); ++next_.batch, next_.row = 0) {
    const auto& samples = given_.samples[next_.batch - given_.first];
    if (next_.row >= samples.size()) continue;
    const GivenSample& sample = samples[next_.row++];
    return Row{next_.epoch, sample.index, sample.draw};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> FetchOrder::next() {
  const auto row = next_row();
  return row ? std::optional(row->sample) : std::nullopt;
}

std::optional<FetchOrder::Row> FetchOrder::next_row() {
  if (next_.is_given) return next_given();
  if (!next_.plan) return std::nullopt;
  const plan::Plan& plan = *next_.plan;
  for (; next_.batch < plan.batches(); ++next_.batch, next_.row = 0)
    if (next_.row < plan.rows(next_.batch)) {
      const auto placed = plan.at(next_.batch * plan_.ranks.batch_rows + next_.row++);
      return Row{next_.epoch, placed.sample, placed.draw};
    }
  return std::nullopt;
}

bool FetchOrder::needs_next_epoch() const {
  return goes_on_ && !next_.is_given && !next_.is_next_epoch && next_.plan && next_.batch >= next_.plan->batches();
}

void FetchOrder::follow(const PlannedEpoch& ended, PlannedEpoch& following) {
  if (!needs_next_epoch() || next_.plan != ended.plan || next_.epoch != ended.epoch) return;
  std::swap(next_.plan, following.plan);
  next_.epoch = following.epoch;
  next_.batch = next_.row = 0;
  next_.is_next_epoch = true;
}

}  // namespace feedline::pipeline
