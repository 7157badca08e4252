// SPDX-License-Identifier: Apache-2.0
#include "plan/bucket_order.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace feedline::plan {

BucketOrder::BucketOrder(std::shared_ptr<const Buckets> buckets, bool shuffle, std::uint64_t key)
    : buckets_(std::move(buckets)) {
  std::uint64_t rest = 0;
  for (std::uint64_t b = 0; b < buckets_->size(); ++b) {
    const std::uint64_t size = buckets_->members(b).size() + rest;
    Pool pool{size / (*buckets_)[b].rows, batches_, {}};
    if (shuffle && size > 0) pool.permutation.emplace(size, base::mix64(key + b + 1));
    batches_ += pool.batches;
    rest = size % (*buckets_)[b].rows;
    pools_.push_back(std::move(pool));
  }
  if (shuffle && batches_ > 0) permutation_.emplace(batches_, key);
  begins_.reserve(batches_ + 1);
  begins_.push_back(0);
  for (std::uint64_t batch = 0; batch < batches_; ++batch)
    begins_.push_back(begins_.back() + (*buckets_)[bucket(batch)].rows);
}

std::uint64_t BucketOrder::bucket(std::uint64_t batch) const {
  if (batch >= batches_) return buckets_->size() - 1;
  const auto pool = std::ranges::upper_bound(pools_, unpermuted(batch), {}, &Pool::first_batch);
  return static_cast<std::uint64_t>(pool - pools_.begin()) - 1;
}

std::uint64_t BucketOrder::batch_from(std::uint64_t position) const {
  const auto begin = std::ranges::lower_bound(begins_, position);
  return std::min(static_cast<std::uint64_t>(begin - begins_.begin()), batches_);
}

bool BucketOrder::is_border(std::uint64_t position) const {
  return position == size() || std::ranges::binary_search(begins_, position);
}

BucketOrder::Run BucketOrder::run_at(std::uint64_t position) const {
  FEEDLINE_CHECK(position < size());
  const auto next = std::ranges::upper_bound(begins_, position);
  const auto batch = static_cast<std::uint64_t>(next - begins_.begin()) - 1;
  const std::uint64_t b = bucket(batch);
  const std::uint64_t before =  // all batches of the bucket are before the rest
      batch < batches_ ? unpermuted(batch) - pools_[b].first_batch : pools_[b].batches;
  const std::uint64_t end = next == begins_.end() ? size() : *next;
  return {b, before * (*buckets_)[b].rows + (position - begins_[batch]), end - position};
}

std::uint64_t BucketOrder::sample_at(std::uint64_t bucket, std::uint64_t offset) const {
  while (true) {
    const auto members = buckets_->members(bucket);
    const Pool& pool = pools_[bucket];
    if (pool.permutation) offset = (*pool.permutation)(offset);
    if (offset < members.size()) return members[offset];
    FEEDLINE_CHECK(bucket > 0);  // it moved up from the previous bucket's rest
    offset -= members.size();
    --bucket;
    offset += pools_[bucket].batches * (*buckets_)[bucket].rows;
  }
}

OrderedSample BucketOrder::at(std::uint64_t position) const {
  const Run run = run_at(position);
  const std::uint64_t sample = sample_at(run.bucket, run.offset);
  return {sample, sample};
}

void BucketOrder::place(std::uint64_t first, std::span<std::uint64_t> samples, std::span<std::uint64_t> draws) const {
  for (std::size_t done = 0; done < samples.size();) {
    const Run run = run_at(first + done);
    const std::uint64_t count = std::min<std::uint64_t>(run.count, samples.size() - done);
    for (std::uint64_t i = 0; i < count; ++i, ++done) samples[done] = sample_at(run.bucket, run.offset + i);
  }
  std::ranges::copy(samples, draws.begin());
}

}  // namespace feedline::plan
