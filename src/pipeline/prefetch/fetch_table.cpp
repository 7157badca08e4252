// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_table.h"

#include <bit>
#include <span>

#include "base/random.h"
#include "pipeline/sample/part_reads.h"

namespace feedline::pipeline {

void FetchWaiter::wait() {
  std::unique_lock lock(mutex_);
  reported_.wait(lock, [this] { return is_reported_; });
  is_reported_ = false;
}

void FetchWaiter::tell() {
  const std::lock_guard lock(mutex_);
  is_reported_ = true;
  reported_.notify_one();
}

std::uint64_t FetchTable::Entry::buffer_bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts) bytes += part.buffer.capacity();
  return bytes + (part_read ? part_read->held_bytes : 0);
}

FetchTable::Outcome FetchTable::Entry::outcome() const {
  Outcome outcome{used > 0, used > 0, used > 0};
  for (const Part& part : std::span(parts).first(used)) {
    const bool is_own = !part.shared || part.has_started_shared;
    outcome.is_whole = outcome.is_whole && part.bytes;
    outcome.was_near = outcome.was_near && part.was_near;
    outcome.was_shared = outcome.was_shared && !is_own;
    if (part.bytes && is_own) outcome.bytes += part.bytes->size();
  }
  return outcome;
}

FetchTable::FetchTable(std::size_t most) : buckets_(std::bit_ceil(most)) {}

std::size_t FetchTable::bucket_of(std::uint64_t sample, std::size_t buckets) {
  return static_cast<std::size_t>(base::mix64(sample)) & (buckets - 1);
}

FetchTable::Entry& FetchTable::add(Entries& from) {
  entries_.splice(entries_.end(), from, from.begin());
  Entry& entry = entries_.back();
  entry.node_ = std::prev(entries_.end());
  entry.older_ = wanted_.last;
  entry.newer_ = nullptr;
  (wanted_.last != nullptr ? wanted_.last->newer_ : wanted_.first) = &entry;
  wanted_.last = &entry;
  Chain& bucket = buckets_[bucket_of(entry.sample, buckets_.size())];
  entry.before_ = bucket.last;
  entry.after_ = nullptr;
  (bucket.last != nullptr ? bucket.last->after_ : bucket.first) = &entry;
  bucket.last = &entry;
  return entry;
}

FetchTable::Entry* FetchTable::find(std::uint64_t sample, const base::SampleKey* key) const {
  const auto is_it = [&](const Entry& entry) {
    return entry.sample == sample && (key == nullptr || (entry.epoch == key->epoch && entry.draw == key->sample));
  };
  Entry* entry = buckets_[bucket_of(sample, buckets_.size())].first;
  while (entry != nullptr && !is_it(*entry)) entry = entry->after_;
  return entry;
}

void FetchTable::claim(Entry& entry) {
  (entry.older_ != nullptr ? entry.older_->newer_ : wanted_.first) = entry.newer_;
  (entry.newer_ != nullptr ? entry.newer_->older_ : wanted_.last) = entry.older_;
  Chain& bucket = buckets_[bucket_of(entry.sample, buckets_.size())];
  (entry.before_ != nullptr ? entry.before_->after_ : bucket.first) = entry.after_;
  (entry.after_ != nullptr ? entry.after_->before_ : bucket.last) = entry.before_;
}

}  // namespace feedline::pipeline
