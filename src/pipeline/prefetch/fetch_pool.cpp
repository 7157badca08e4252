// SPDX-License-Identifier: Apache-2.0
#include "pipeline/prefetch/fetch_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/clock.h"

namespace feedline::pipeline {
namespace {

constexpr std::uint64_t kMostReads = 256;  // a sample in several objects counts for each
// Limits for joined reads: the upper limit makes requests for small samples worth a round trip; the lower limit ensures
// that several reads can be joined even if the latency is low.
constexpr std::uint64_t kMostJoined = 4096, kLeastJoined = 128;
constexpr std::uint64_t kFirstMean = 128 << 10;  // bytes per sample, before any were measured: a photo

std::uint64_t least_reads(std::uint64_t slack, std::size_t parts, bool joins) {
  return std::max(2 * slack, joins ? kLeastJoined / parts : 0);
}

std::uint64_t most_reads(std::uint64_t slack, std::size_t parts, bool joins) {
  return std::max((joins ? kMostJoined : kMostReads) / parts, 4 * slack);
}

// A linked list of abandoned tables, which are never freed but stay reachable.
std::atomic<FetchTable*> last_left = nullptr;

}  // namespace

FetchPool::FetchPool(std::uint64_t slack, std::uint64_t most_bytes, std::size_t parts, bool joins,
                     telemetry::HeldBytes& held)
    : slack_(slack),
      most_bytes_(most_bytes),
      joins_(joins),
      // twice the slack, so that unneeded fetches leave room for needed ones
      depth_(least_reads(slack, parts, joins), most_reads(slack, parts, joins),
             joins ? ReadDepth::Start::kWithAnswers : ReadDepth::Start::kAtLeast),
      entries_(most_reads(slack, parts, joins)),
      held_bytes_(held),
      mean_bytes_(kFirstMean) {}

// Returns the maximum number of simultaneous fetches. The number of joined reads is limited to those that fit in
// memory, so that has_much_room() can become true.
std::uint64_t FetchPool::most() const {
  const std::uint64_t reads = depth_.reads();
  return joins_ ? std::min(reads, std::max<std::uint64_t>(most_bytes_ / std::max<std::uint64_t>(mean_bytes_, 1), 1))
                : reads;
}

std::size_t FetchPool::room() const {
  const std::uint64_t most = this->most();
  if (entries_.size() >= most || held_bytes_ + mean_bytes_ > most_bytes_ + (spare_.empty() ? 0 : mean_bytes_)) return 0;
  return most - entries_.size();
}

bool FetchPool::has_much_room() const { return joins_ ? room() >= (most() + 3) / 4 : room() > depth_.reads() / 8; }

bool FetchPool::may_begin() {
  if (joins_) is_filling_ = is_filling_ ? room() > 0 : has_much_room();
  return joins_ ? is_filling_ : room() > 0;
}

FetchPool::Entry& FetchPool::begin(const FetchOrder::Row& row, Entries& fresh) {
  Entries& from = spare_.empty() ? fresh : spare_;
  Entry& entry = from.front();
  held_bytes_ -= entry.held_bytes;
  if (&from == &spare_) spare_bytes_ -= entry.held_bytes;
  entry.sample = row.sample;
  entry.epoch = row.epoch;
  entry.draw = row.draw;
  entry.number = numbers_++;
  entry.held_bytes = std::max(entry.buffer_bytes(), mean_bytes_);
  entry.started_ns = base::now_ns();
  entry.is_finished = entry.is_abandoned = false;
  held_bytes_ += entry.held_bytes;
  entries_.add(from);
  ++under_way_;
  most_under_way_ = std::max(most_under_way_, under_way_);
  return entry;
}

void FetchPool::finish(Entry& entry, const FetchTable::Outcome& outcome, Entries& unused) {
  entry.is_finished = true;
  --under_way_;
  held_bytes_ -= entry.held_bytes;
  entry.held_bytes = entry.buffer_bytes();
  held_bytes_ += entry.held_bytes;
  for (const FetchTable::Part& part : std::span(entry.parts).first(entry.used))
    if (part.shared && part.shared->users++ == 0) held_bytes_ += part.shared->buffer.capacity();
  if (outcome.is_whole || entry.used == 0) mean_bytes_ += (outcome.bytes + 1) / 16 - mean_bytes_ / 16;
  if (!outcome.was_near && !outcome.was_shared && outcome.is_whole) depth_.completed(base::now_ns() - entry.started_ns);
  if (entry.is_abandoned) drop(entry, unused);
}

FetchPool::Entry* FetchPool::claim(std::uint64_t sample, const base::SampleKey* key) {
  Entry* const entry = entries_.find(sample, key);
  depth_.taken(base::now_ns(), entry == nullptr || !entry->is_finished);
  if (entry != nullptr) entries_.claim(*entry);
  return entry;
}

void FetchPool::hand_over(const FetchTable::Parts& parts, std::size_t used) {
  for (const FetchTable::Part& part : std::span(parts).first(used))
    if (part.shared && --part.shared->users == 0) held_bytes_ -= part.shared->buffer.capacity();
}

void FetchPool::taken(Entry& entry, Entries& unused) {
  abandon(entry.number - std::min(entry.number, slack_), unused);
  put_away(entry, unused);
}

void FetchPool::abandon_all(Entries& unused) { abandon(numbers_, unused); }

void FetchPool::abandon(std::uint64_t before, Entries& unused) {
  for (Entry* oldest = entries_.oldest_wanted(); oldest != nullptr && oldest->number < before;
       oldest = entries_.oldest_wanted()) {
    entries_.claim(*oldest);
    oldest->is_abandoned = true;
    if (oldest->is_finished) drop(*oldest, unused);
  }
}

// Shared bytes are freed with the entry, outside the lock.
void FetchPool::drop(Entry& entry, Entries& unused) {
  const auto parts = std::span(entry.parts).first(entry.used);
  if (std::ranges::none_of(parts, [](const FetchTable::Part& part) { return part.shared != nullptr; }))
    return put_away(entry, unused);
  hand_over(entry.parts, entry.used);
  held_bytes_ -= entry.held_bytes;
  entries_.move_to(unused, entry);
}

void FetchPool::put_away(Entry& entry, Entries& unused) {
  held_bytes_ -= entry.held_bytes;
  // spare entries above the limit would leave no room for fetches and never be used
  const bool fits = held_bytes_ + entry.buffer_bytes() <= most_bytes_;
  if (spare_.size() >= depth_.reads() || !keeps_spare_ || !fits) return entries_.move_to(unused, entry);
  entry.held_bytes = entry.buffer_bytes();
  held_bytes_ += entry.held_bytes;
  spare_bytes_ += entry.held_bytes;
  entries_.move_to(spare_, entry);
}

void FetchPool::keep_none(Entries& unused) {
  keeps_spare_ = false;
  abandon_all(unused);
  unused.splice(unused.end(), spare_);
  held_bytes_ -= std::exchange(spare_bytes_, 0);
}

void FetchPool::leave_behind() {
  keeps_spare_ = false;
  std::swap(entries_, *nothing_);
  FetchTable* const left = nothing_.release();
  left->left_before = last_left.exchange(left);
}

}  // namespace feedline::pipeline
