// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "plan/bucket_order.h"

namespace feedline::plan {

Plan::Plan(std::shared_ptr<const Order> order, const PlanConfig& config)
    : order_(std::move(order)),
      config_(config),
      global_batch_(config.batch_rows * config.world_size),
      buckets_(order_->as_buckets()) {
  FEEDLINE_CHECK(config.batch_rows > 0 && config.rank < config.world_size);
  FEEDLINE_CHECK(!config.interleaved || buckets_ == nullptr);
  const std::uint64_t end = order_->size() - std::min(config.left_out, order_->size());
  std::uint64_t begin = std::min(config.begin, end);
  const auto leave = [&](std::uint64_t until) {
    if (until <= begin) return;
    left_.push_back({begin, until});
    places_ += until - begin;
  };
  for (const Positions& span : config.delivered) {
    leave(std::min(span.begin, end));
    begin = std::max(begin, std::min(span.end, end));
  }
  leave(end);
  full_batches_ = places_ / global_batch_;
  remainder_ = places_ % global_batch_;
  if (buckets_ != nullptr) keep_batches(*buckets_);
  share_ = share_of(config.rank);
  positions_ = full_batches_ * config.batch_rows + share_.rows;
}

void Plan::keep_batches(const BucketOrder& buckets) {
  for (const Positions& span : left_)
    for (std::uint64_t b = buckets.batch_from(span.begin); b < buckets.batches() && buckets.begin(b) < span.end; ++b)
      batches_.push_back(b);
  const std::uint64_t rest = buckets.begin(buckets.batches());
  full_batches_ = batches_.size();
  remainder_ = left_.empty() || left_.back().end <= rest ? 0 : left_.back().end - std::max(rest, left_.back().begin);
}

Plan::Share Plan::share_of(std::uint64_t rank) const {
  const std::uint64_t ranks = config_.world_size;
  const std::uint64_t least = remainder_ / ranks;
  const std::uint64_t over = remainder_ % ranks;
  const std::uint64_t first = places_ - remainder_;
  if (config_.uneven == Uneven::kPad && over > 0) return {first + rank * (least + 1), least + 1};
  if (config_.uneven == Uneven::kExact) return {first + rank * least + std::min(rank, over), least + (rank < over)};
  return {first + rank * least, least};
}

std::uint64_t Plan::batches(std::uint64_t rank) const {
  // not "whether this rank's share fills a batch": with padding, that would depend on the number of ranks
  return full_batches_ + (!config_.drop_last && share_of(rank).rows > 0 ? 1 : 0);
}

std::uint64_t Plan::rows(std::uint64_t batch, std::uint64_t rank) const {
  if (batch < full_batches_)
    return buckets_ ? buckets_->buckets()[bucket(batch)].rows / config_.world_size : config_.batch_rows;
  return batch == full_batches_ && !config_.drop_last ? share_of(rank).rows : 0;
}

std::uint64_t Plan::samples(std::uint64_t rank) const {
  std::uint64_t samples = 0;
  if (!buckets_) samples = full_batches_ * config_.batch_rows;
  for (std::uint64_t batch = buckets_ ? 0 : full_batches_; batch < batches(rank); ++batch) samples += rows(batch, rank);
  return samples;
}

std::uint64_t Plan::bucket(std::uint64_t batch) const {
  if (!buckets_) return 0;
  return buckets_->bucket(batch < full_batches_ ? batches_[batch] : buckets_->batches());
}

std::uint64_t Plan::index_of(std::uint64_t batch) const {
  if (!buckets_) return begin_of(batch) / global_batch_;
  return batch < full_batches_ ? batches_[batch] : buckets_->batches();
}

std::uint64_t Plan::find_sample(std::uint64_t position) const {
  FEEDLINE_CHECK(position < positions_);
  if (config_.interleaved) return position * config_.world_size + config_.rank;
  const std::uint64_t batch = position / config_.batch_rows;
  return batch < full_batches_
             ? batch * global_batch_ + config_.rank * config_.batch_rows + position % config_.batch_rows
             : share_.first + (position - full_batches_ * config_.batch_rows);
}

Positions Plan::run_from(std::uint64_t position) const {
  const std::uint64_t batch = position / config_.batch_rows;
  const std::uint64_t row = position % config_.batch_rows;
  if (!buckets_ || batch >= full_batches_) {
    const Positions run = run_at(find_sample(position));
    const bool stands_alone = config_.interleaved && config_.world_size > 1;
    return stands_alone ? Positions{run.begin, run.begin + 1} : run;
  }
  const std::uint64_t rows = this->rows(batch);
  FEEDLINE_CHECK(row < rows);
  return {buckets_->begin(batches_[batch]) + config_.rank * rows + row, buckets_->begin(batches_[batch] + 1)};
}

OrderedSample Plan::at(std::uint64_t position) const { return order_->at(run_from(position).begin); }

void Plan::place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const {
  while (!samples.empty()) {
    const Positions run = run_from(first);
    FEEDLINE_CHECK(run.begin < run.end);
    const std::uint64_t count = std::min<std::uint64_t>(run.end - run.begin, samples.size());
    order_->place(run.begin, samples.first(count), draws.first(count));
    samples = samples.subspan(count);
    draws = draws.subspan(count);
    first += count;
  }
}

Positions Plan::run_at(std::uint64_t index) const {
  if (index >= places_)
    return {(index - places_) % order_->size(), order_->size()};  // only kPad: the order starts over
  for (const Positions& span : left_) {
    if (index < span.end - span.begin) return {span.begin + index, span.end};
    index -= span.end - span.begin;
  }
  FEEDLINE_CHECK(!"each remaining index is in a span");
}

std::uint64_t Plan::begin_of(std::uint64_t batch) const {
  if (buckets_ && batch < full_batches_) return buckets_->begin(batches_[batch]);
  // the even division, and with buckets the positions after the last whole batch
  const std::uint64_t index = !buckets_                ? batch * global_batch_
                              : batch == full_batches_ ? places_ - remainder_
                                                       : places_;
  return index < places_ ? order_position(index) : order_->size() - std::min(config_.left_out, order_->size());
}

void Plan::add_positions(std::uint64_t batch, std::vector<Positions>& spans) const {
  if (buckets_ && batch < full_batches_) {
    spans.push_back({buckets_->begin(batches_[batch]), buckets_->begin(batches_[batch] + 1)});
    return;
  }
  std::uint64_t first = buckets_ ? places_ - remainder_ : batch * global_batch_;
  std::uint64_t last = std::min(first + global_batch_, places_);
  for (const Positions& span : left_) {
    const std::uint64_t length = span.end - span.begin;
    if (first < length && first < last) spans.push_back({span.begin + first, span.begin + std::min(last, length)});
    first -= std::min(first, length);
    last -= std::min(last, length);
  }
}

std::vector<Positions> tidied(std::vector<Positions> spans, std::uint64_t begin) {
  std::ranges::sort(spans, {}, &Positions::begin);
  std::size_t merged = 0;
  for (const Positions span : spans) {
    if (span.end <= begin) continue;
    if (merged > 0 && spans[merged - 1].end >= span.begin)
      spans[merged - 1].end = std::max(spans[merged - 1].end, span.end);
    else
      spans[merged++] = span;
  }
  spans.resize(merged);
  return spans;
}

}  // namespace feedline::plan
