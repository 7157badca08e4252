// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the rows of a batch's late fields are until it settles. They go round: a batch that is composed gives them to
// the next one that is opened, so that a row costs no allocation once its item has grown.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/row.h"

namespace feedline::pipeline {

// Of one slot: one for each late field, row by row.
struct LateItems {
  std::vector<memory::ListItem> all;

  LateItems(std::size_t count, std::shared_ptr<std::atomic<std::uint64_t>> held_in)
      : all(count), held(std::move(held_in)) {}
  ~LateItems() { *held -= bytes; }
  LateItems(const LateItems&) = delete;
  LateItems& operator=(const LateItems&) = delete;

  // By a thread that has them all: gives back what lies idle, and counts the rest. Gives what they held before.
  std::uint64_t tidy();

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> held;  // by all items of a pipeline
  std::uint64_t bytes = 0;                                 // of it
};

// Any thread.
class LateItemPool {
 public:
  explicit LateItemPool(std::size_t count) : count_(count) {}

  std::unique_ptr<LateItems> take();  // of a slot; nullptr: no field is late
  void give_back(std::unique_ptr<LateItems> items);
  // By those in the pool and in slots, as of when each was composed last.
  std::uint64_t held_bytes() const { return *held_; }

 private:
  const std::size_t count_;  // items of a slot
  const std::shared_ptr<std::atomic<std::uint64_t>> held_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex mutex_;
  std::vector<std::unique_ptr<LateItems>> spare_;
};

}  // namespace feedline::pipeline
