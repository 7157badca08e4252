// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fetches of read-ahead, their maximum number, and their memory.
//
//   begin() -> in flight -> finish() -> finished -> put_away() -> spare, for the next one
//                  └── claimed by the thread that needs it, or abandoned ──┘
//
// Owned by a FetchScheduler and used under its lock: entries that do not become spare are moved to the caller's list
// `unused`, which is destroyed outside the lock.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/random.h"
#include "pipeline/prefetch/fetch_order.h"
#include "pipeline/prefetch/fetch_table.h"
#include "pipeline/prefetch/read_depth.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

// Not thread-safe.
class FetchPool {
 public:
  using Entry = FetchTable::Entry;
  using Entries = FetchTable::Entries;

  // slack: the number of samples that threads may still need after a later sample was taken. most_bytes: the total
  // limit. parts: the maximum number of objects per sample. joins: the storage merges simultaneous reads into fewer
  // requests, so many are started at a time. `held` counts the same bytes and must outlive this object.
  FetchPool(std::uint64_t slack, std::uint64_t most_bytes, std::size_t parts, bool joins, telemetry::HeldBytes& held);

  std::size_t room() const;    // number of further fetches
  bool has_much_room() const;  // enough to wake a thread: waking takes longer than fetching
  // Returns whether another fetch may start. Joined reads wait until much memory is free, and then use it.
  bool may_begin();
  bool has_spare() const { return !spare_.empty(); }
  // Starts a fetch for this row's sample in a spare entry, or else in the first entry of `fresh`; the fetch is marked
  // as wanted. Requires: there is a spare entry, or `fresh` has one.
  Entry& begin(const FetchOrder::Row& row, Entries& fresh);
  void finish(Entry& entry, const FetchTable::Outcome& outcome, Entries& unused);
  // Called when a thread needs a sample. Returns the sample's fetch, which is then no longer marked as wanted; nullptr
  // if there is none. key: as of FetchTable::find().
  Entry* claim(std::uint64_t sample, const base::SampleKey* key = nullptr);
  // Called before a thread takes the parts of its fetch.
  void hand_over(const FetchTable::Parts& parts, std::size_t used);
  // Called when the thread has copied the bytes; abandons fetches that are much older.
  void taken(Entry& entry, Entries& unused);
  void abandon_all(Entries& unused);

  // Reuses finished fetches as spare entries from now on.
  void keep_spare() { keeps_spare_ = true; }
  void keep_none(Entries& unused);  // and abandons all
  // Leaks all entries, because reads in flight may still write to them, and their completion will never be reported.
  // Does not allocate.
  void leave_behind();

  Entries& all() { return entries_.all(); }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t under_way() const { return under_way_; }
  std::uint64_t most_under_way() const { return most_under_way_; }
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t mean_bytes() const { return mean_bytes_; }  // per fetch
  std::uint64_t latency_ns() const { return depth_.latency_ns(); }

 private:
  void abandon(std::uint64_t before, Entries& unused);  // those with lower numbers
  void put_away(Entry& entry, Entries& unused);
  void drop(Entry& entry, Entries& unused);  // of an abandoned fetch
  std::uint64_t most() const;                // maximum number of fetches

  const std::uint64_t slack_;
  const std::uint64_t most_bytes_;
  const bool joins_;
  bool is_filling_ = false;  // joined reads: until there is no room
  ReadDepth depth_;
  FetchTable entries_;
  std::unique_ptr<FetchTable> nothing_ = std::make_unique<FetchTable>(1);  // replaces the entries in leave_behind()
  Entries spare_;                                                          // reused for their buffers
  bool keeps_spare_ = false;
  std::uint64_t numbers_ = 0, under_way_ = 0, most_under_way_ = 0;
  telemetry::HeldPart held_bytes_;
  std::uint64_t spare_bytes_ = 0;  // part of held_bytes_, in spare_
  std::uint64_t mean_bytes_;
};

}  // namespace feedline::pipeline
