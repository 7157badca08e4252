// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fetches of read-ahead, how many there may be, and their memory:
//
//   begin() -> under way -> finish() -> finished -> put_away() -> spare, for the next one
//                  └── claimed by the thread that comes for it, or abandoned: nobody will ──┘
//
// Owned by a FetchExchange, used under its lock: what is not spare goes into the caller's `unused`, to be destroyed
// without the lock.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pipeline/fetch_table.h"
#include "pipeline/read_depth.h"
#include "telemetry/held_bytes.h"

namespace feedline::pipeline {

// Not thread-safe.
class FetchStock {
 public:
  using Entry = FetchTable::Entry;
  using Entries = FetchTable::Entries;

  // slack: samples that threads may still come for after a later one was taken. most_bytes: of all together. parts:
  // objects of a sample, at most. joins: the storage reads what is fetched together by fewer requests, so many are
  // begun at a time. `held` counts them too, and outlives it.
  FetchStock(std::uint64_t slack, std::uint64_t most_bytes, std::size_t parts, bool joins, telemetry::HeldBytes& held);

  std::size_t room() const;    // for so many more
  bool has_much_room() const;  // enough to wake a thread for it: waking takes longer than fetching
  // May another one be begun? Where reads are joined, not before there is much room, and then until there is none.
  bool may_begin();
  bool has_spare() const { return !spare_.empty(); }
  // A spare one, or else the first of `fresh`, for this sample, which is wanted from now on. Requires: there is one.
  Entry& begin(std::uint64_t sample, Entries& fresh);
  void finish(Entry& entry, const FetchTable::Outcome& outcome, Entries& unused);
  // A thread has come for a sample. Its fetch is not wanted any more; nullptr: there is none.
  Entry* claim(std::uint64_t sample);
  // Its thread has its bytes; whoever wants one that is much older has had its time.
  void taken(Entry& entry, Entries& unused);
  void abandon_all(Entries& unused);

  // Are fetches kept as spare ones?
  void keep_spare() { keeps_spare_ = true; }
  void keep_none(Entries& unused);  // and abandons all
  // Reads may be under way into the fetches that there are, and nobody will ever say that they are over: they stay in
  // memory. Takes none itself.
  void leave_behind();

  Entries& all() { return entries_.all(); }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t under_way() const { return under_way_; }
  std::uint64_t most_under_way() const { return most_under_way_; }
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t mean_bytes() const { return mean_bytes_; }  // of a fetch
  std::uint64_t latency_ns() const { return depth_.latency_ns(); }

 private:
  void abandon(std::uint64_t before, Entries& unused);  // those of lower numbers
  void put_away(Entry& entry, Entries& unused);
  std::uint64_t most() const;  // fetches that there may be

  const std::uint64_t slack_;
  const std::uint64_t most_bytes_;
  const bool joins_;
  bool is_filling_ = false;  // where they are joined: until there is no room
  ReadDepth depth_;
  FetchTable entries_;
  std::unique_ptr<FetchTable> nothing_ = std::make_unique<FetchTable>(1);  // what the entries become in leave_behind()
  Entries spare_;                                                          // for their buffers
  bool keeps_spare_ = false;
  std::uint64_t numbers_ = 0, under_way_ = 0, most_under_way_ = 0;
  telemetry::HeldPart held_bytes_;
  std::uint64_t spare_bytes_ = 0;  // of held_bytes_, in spare_
  std::uint64_t mean_bytes_;
};

}  // namespace feedline::pipeline
