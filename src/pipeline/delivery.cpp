// SPDX-License-Identifier: Apache-2.0
#include "pipeline/delivery.h"

#include <algorithm>
#include <utility>

#include "batch/make_batch.h"

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
  position_.epoch = epoch.epoch();
  position_.position = epoch.position();
  position_.delivered = epoch.delivered(std::move(position_.delivered));
  position_.left_out = epoch.left_out();
  last_batch_ = slot.batch;
  epoch_bad_ += slot.bad.size();
  for (const BadSample& bad : slot.bad) bad_.push_back(std::make_shared<const BadSample>(bad));
  if (!slot.bad.empty() && policy_.over_budget(epoch_bad_))
    return std::unexpected(policy_.budget_error(slot.bad.back().error));
  return {};
}

Result<Loader::Polled> Delivery::count(const Epoch& epoch, const Slot& slot) {
  if (slot.rows == 0) return Loader::Polled::kPending;
  waiting_ns_ = 0;
  if (!slot.failures.empty() && policy_.on_error() != OnError::kReport) {
    const auto& first = slot.failures.front();
    bad_.push_back(std::make_shared<const BadSample>(
        BadSample{first.error, epoch.epoch(), epoch.index_of(slot.batch), slot.samples[first.row], OnError::kRaise}));
    return std::unexpected(first.error);
  }
  if (slot.prepared && slot.prepared->error) return std::unexpected(*slot.prepared->error);
  ++batches_;
  samples_ += slot.rows;
  return Loader::Polled::kBatch;
}

Result<void> Delivery::hand_over(Slot& slot, std::uint64_t index, Batch& out) const {
  batch::Parts parts{.layout = std::move(slot.layout), .lease = std::move(slot.lease), .device = device_};
  if (slot.prepared) {
    for (const auto& arrival : slot.prepared->arrivals)
      if (arrival && arrival->is_ready()) FEEDLINE_CHECK_OK(arrival->wait());
    parts.composed = std::move(slot.prepared->composed);
    parts.ready = std::move(slot.prepared->arrivals);
  }
  out = batch::make_batch(std::move(parts), index, std::move(slot.samples), std::move(slot.failures));
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
