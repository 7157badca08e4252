// SPDX-License-Identifier: Apache-2.0
#pragma once

// Holds fetches that are in flight, or that are finished but not yet used. Fetches are found by sample, by age and by
// the queue's completion in constant time, for any number of threads and reads. A sample may consist of several
// objects, which are fetched together.
//
//   wanted       a thread may need it: find(), oldest_wanted()
//   not wanted   a thread has claimed it and is waiting for it or taking it, or it is abandoned

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "storage/fetch.h"

namespace feedline::pipeline {

struct PartRead;

// Blocks a thread until its fetch finishes; can be reused.
class FetchWaiter {
 public:
  void wait();  // until tell() was called since the last wait()
  void tell();  // any other thread

 private:
  std::mutex mutex_;
  std::condition_variable reported_;
  bool is_reported_ = false;
};

// Not thread-safe. Does not allocate memory after construction.
class FetchTable {
 public:
  struct Entry;
  using Entries = std::list<Entry>;
  struct Shared;
  struct Queued : storage::Fetch {
    bool is_shared = false;  // whether this is a Shared, otherwise it is a Part
  };
  struct Part : Queued {
    Entry* entry = nullptr;          // owner while in flight
    std::shared_ptr<Shared> shared;  // if set, this fetch is in flight instead, and its buffer has the bytes
    bool has_started_shared = false;
  };
  // A fetch of bytes that several samples need. Every entry that waits for it owns it.
  struct Shared : Queued {
    Shared() { is_shared = true; }
    std::shared_ptr<const storage::Reader> reader;  // not freed before the bytes, so that its address identifies them
    // used only by the fetching thread
    std::vector<Part*> waiting;
    bool is_finished = false;
    std::uint64_t users = 0;  // finished entries that were not yet taken; used only by FetchPool
  };
  using Parts = std::vector<Part>;
  // The result of fetching the parts of a sample.
  struct Outcome {
    bool is_whole = true;
    bool was_near = true;     // all of them were in memory
    bool was_shared = false;  // another sample has started all of these fetches
    std::uint64_t bytes = 0;  // without the bytes of fetches that other samples have started
  };
  struct Entry {
    Parts parts;                // the maximum per sample
    std::size_t used = 0;       // number used by this sample
    std::size_t under_way = 0;  // number in flight
    std::uint64_t sample = 0;
    std::uint64_t epoch = 0, draw = 0;    // of the sample's random draws
    std::shared_ptr<PartRead> part_read;  // its range is fetched; nullptr: the whole sample
    std::uint64_t number = 0;             // in the order of fetching
    std::uint64_t held_bytes = 0;         // size of its buffers, now or when filled
    std::uint64_t started_ns = 0;
    bool is_finished = false;
    bool is_abandoned = false;
    std::shared_ptr<FetchWaiter> waiter;  // of the thread that claimed it before it finished

    std::uint64_t buffer_bytes() const;
    Outcome outcome() const;  // Requires: it is finished

   private:
    friend class FetchTable;
    Entries::iterator node_;                      // position in the list that owns this entry
    Entry *older_ = nullptr, *newer_ = nullptr;   // neighbours among wanted entries
    Entry *before_ = nullptr, *after_ = nullptr;  // neighbours in the same bucket, oldest first
  };

  // most: the expected maximum number of entries.
  explicit FetchTable(std::size_t most);

  // Adds the first entry of `from`; its sample must be set, and its number must be higher than all before. It becomes
  // wanted.
  Entry& add(Entries& from);
  // Returns the oldest wanted entry of this sample, or nullptr if there is none. key: of the sample's random draws, if
  // the entry must have the same.
  Entry* find(std::uint64_t sample, const base::SampleKey* key = nullptr) const;
  Entry* oldest_wanted() const { return wanted_.first; }
  // Makes it unwanted. Requires: the entry is wanted.
  void claim(Entry& entry);
  // Moves an unwanted entry to the end of another list.
  void move_to(Entries& to, Entry& entry) { to.splice(to.end(), entries_, entry.node_); }
  Entries& all() { return entries_; }
  std::size_t size() const { return entries_.size(); }

  FetchTable* left_before = nullptr;  // FetchPool's link from an abandoned table

 private:
  struct Chain {
    Entry *first = nullptr, *last = nullptr;
  };
  static std::size_t bucket_of(std::uint64_t sample, std::size_t buckets);

  Entries entries_;
  Chain wanted_;
  std::vector<Chain> buckets_;  // size is a power of two
};

}  // namespace feedline::pipeline
