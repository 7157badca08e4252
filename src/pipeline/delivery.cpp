// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delivery.h"

#include <algorithm>
#include <utility>

#include "batch/batch_layout.h"

namespace feedline::pipeline {

void Delivery::begin(const EpochStart& start, std::uint64_t now_ns) {
  position_ = start;
  last_batch_.reset();
  epoch_bad_ = 0;
  waiting_ns_ = 0;
  if (first_ns_ == 0) first_ns_ = now_ns;
}

Result<void> Delivery::note(const Epoch& epoch, const Slot& slot, std::uint64_t now_ns) {
  last_ns_ = now_ns;
  position_ = {epoch.epoch(), epoch.position(), epoch.delivered(), epoch.left_out()};
  last_batch_ = slot.batch;
  epoch_bad_ += slot.bad.size();
  bad_.insert(bad_.end(), slot.bad.begin(), slot.bad.end());
  if (!slot.bad.empty() && policy_.over_budget(epoch_bad_))
    return std::unexpected(policy_.budget_error(slot.bad.back().error));
  return {};
}

Result<Loader::Polled> Delivery::take(const Epoch& epoch, Slot& slot, Batch& out) {
  if (slot.rows == 0) return Loader::Polled::kPending;
  waiting_ns_ = 0;
  const std::uint64_t index = epoch.index_of(slot.batch);
  if (!slot.failures.empty() && policy_.action() != OnError::kReport) {
    const auto& first = slot.failures.front();
    bad_.push_back({first.error, epoch.epoch(), index, slot.samples[first.row], OnError::kRaise});
    return std::unexpected(first.error);
  }
  FEEDLINE_TRY(auto lease, device_->deliver(std::move(slot.lease)));
  ++batches_;
  samples_ += slot.rows;
  out = batch::make_batch(std::move(slot.layout), std::move(lease), index, std::move(slot.samples),
                          std::move(slot.failures));
  return Loader::Polled::kBatch;
}

void Delivery::add_to(LoaderStats& stats, bool running, std::uint64_t now_ns) const {
  stats.batches = batches_;
  stats.samples = samples_;
  stats.bad_samples = bad_.size();
  if (first_ns_ == 0) return;
  const std::uint64_t until = running ? now_ns : std::max(last_ns_, first_ns_);
  stats.wall_s = static_cast<double>(until - first_ns_) * 1e-9;
}

}  // namespace feedline::pipeline
