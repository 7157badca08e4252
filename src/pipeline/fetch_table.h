// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches that are under way or finished, and not taken yet: found by their sample, by their age and by what the queue
// gives back, each in constant time, so that more threads and more reads make no look-up longer. A sample may lie in
// several objects, which are fetched at once.
//
//   wanted       a thread may come for it: find(), oldest_wanted()
//   not wanted   a thread has claimed it and waits for it or takes it, or it is abandoned: nobody will come for it

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/fetch.h"

namespace feedline::pipeline {

// What one thread waits at for one fetch after the other.
class FetchWaiter {
 public:
  void wait();  // until tell() was called since the last wait()
  void tell();  // any other thread

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  bool is_told_ = false;
};

// Not thread-safe. Takes no memory once it is made.
class FetchTable {
 public:
  struct Entry;
  using Entries = std::list<Entry>;
  struct Part : storage::Fetch {
    Entry* entry = nullptr;  // that it is a part of, while it is under way
  };
  using Parts = std::vector<Part>;
  // What became of a sample's parts.
  struct Outcome {
    bool is_whole = true;
    bool was_near = true;  // all of them were in memory
    std::uint64_t bytes = 0;
  };
  struct Entry {
    Parts parts;                // as many as a sample may have
    std::size_t used = 0;       // of them, by this sample
    std::size_t under_way = 0;  // likewise
    std::uint64_t sample = 0;
    std::uint64_t number = 0;      // in the order of fetching
    std::uint64_t held_bytes = 0;  // of its buffers, or what they will have
    std::uint64_t started_ns = 0;
    bool is_finished = false;
    bool is_abandoned = false;
    std::shared_ptr<FetchWaiter> waiter;  // of the thread that has claimed it before it was finished

    std::uint64_t buffer_bytes() const;
    Outcome outcome() const;  // Requires: it is finished

   private:
    friend class FetchTable;
    Entries::iterator place_;                      // in the list that has it
    Entry *older_ = nullptr, *newer_ = nullptr;    // of those that are wanted
    Entry *before_ = nullptr, *behind_ = nullptr;  // of those in the same bucket, the oldest first
  };

  // most: entries, as a rule.
  explicit FetchTable(std::size_t most);

  // Takes the first of `from`, which has its sample, and a higher number than all before. It is wanted.
  Entry& add(Entries& from);
  // The oldest one of this sample that is wanted; nullptr: there is none.
  Entry* find(std::uint64_t sample) const;
  Entry* oldest_wanted() const { return wanted_.first; }
  // It is not wanted any more. Requires: it is.
  void claim(Entry& entry);
  // Moves one that is not wanted to the end of another list.
  void move_to(Entries& to, Entry& entry) { to.splice(to.end(), entries_, entry.place_); }
  Entries& all() { return entries_; }
  std::size_t size() const { return entries_.size(); }

  FetchTable* left_before = nullptr;  // FetchStock's, of one that it leaves behind

 private:
  struct Chain {
    Entry *first = nullptr, *last = nullptr;
  };
  static std::size_t bucket_of(std::uint64_t sample, std::size_t buckets);

  Entries entries_;
  Chain wanted_;
  std::vector<Chain> buckets_;  // a power of two of them
};

}  // namespace feedline::pipeline
