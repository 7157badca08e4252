// SPDX-License-Identifier: Apache-2.0
#include "pipeline/epoch/delivery.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "batch/make_batch.h"

namespace feedline::pipeline {

void Delivery::begin(const EpochStart& start, std::uint64_t now_ns) {
  position_ = start;
  last_batch_.reset();
  epoch_bad_ = 0;
  waiting_ns_ = 0;
  if (first_ns_ == 0) first_ns_ = now_ns;
}

Delivery::Noted Delivery::note(const Epoch& epoch, Slot& slot, std::uint64_t now_ns) {
  last_ns_ = now_ns;
  position_.epoch = epoch.epoch();
  position_.position = epoch.position();
  position_.delivered = epoch.delivered(std::move(position_.delivered));
  position_.left_out = epoch.left_out();
  last_batch_ = slot.batch;
  const std::size_t bad = slot.bad.size();
  epoch_bad_ += bad;
  bad_.splice(bad_.end(), slot.bad);
  if (bad > 0 && policy_.over_budget(epoch_bad_)) return Noted::kOverBudget;
  if (slot.rows == 0) return Noted::kNothing;
  waiting_ns_ = 0;
  if (!slot.failures.empty() && policy_.on_error() != OnError::kReport) {
    slot.failures.front().sample.action = OnError::kRaise;
    bad_.splice(bad_.end(), slot.failures, slot.failures.begin());
    return Noted::kBad;
  }
  if (slot.prepared && slot.prepared->error) return Noted::kUnready;
  ++batches_;
  samples_ += slot.rows;
  return Noted::kBatch;
}

Result<void> Delivery::hand_over(Slot& slot, Noted noted, std::uint64_t index, Batch& out) const {
  if (noted == Noted::kOverBudget) return std::unexpected(policy_.budget_error(bad_.back().sample.error));
  if (noted == Noted::kBad) {
    Error error = bad_.back().sample.error;
    if (policy_.on_error() == OnError::kRaise && error.code == ErrorCode::kData)
      error.what += "; on_error=\"skip\" skips such samples";
    return std::unexpected(std::move(error));
  }
  if (noted == Noted::kUnready) return std::unexpected(std::move(*slot.prepared->error));
  batch::Parts parts{.layout = std::move(slot.delivered ? slot.delivered : slot.layout),
                     .lease = std::move(slot.lease),
                     .device = device_};
  if (slot.prepared) {
    for (const auto& arrival : slot.prepared->arrivals)
      if (arrival && arrival->is_ready()) FEEDLINE_CHECK_OK(arrival->wait());
    parts.composed = std::move(slot.prepared->composed);
    parts.ready = std::move(slot.prepared->arrivals);
    slot.samples.resize(slot.samples.size() - slot.prepared->used_up);
  }
  std::vector<BadRow> bad;
  for (BadEntry& entry : slot.failures) bad.push_back({entry.row, std::move(entry.sample.error)});
  out = batch::make_batch(std::move(parts), index, std::move(slot.samples), std::move(bad));
  return {};
}

void Delivery::add_to(LoaderStats& stats, bool running, std::uint64_t now_ns) const {
  stats.batches = batches_;
  stats.samples = samples_;
  stats.bad_samples = bad_.size();
  if (first_ns_ == 0) return;
  const std::uint64_t until = std::max(running ? now_ns : last_ns_, first_ns_);
  stats.wall_s = static_cast<double>(until - first_ns_) * 1e-9;
}

}  // namespace feedline::pipeline
