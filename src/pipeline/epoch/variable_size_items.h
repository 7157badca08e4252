// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stores the rows of a batch's variable-size fields until the batch is complete. Batches return their items after
// composition, for reuse by the next batch, so a row needs no allocation once its item has grown.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/row.h"

namespace feedline::pipeline {

// The items of one slot: row by row, one item for each variable-size field.
struct VariableSizeItems {
  std::vector<memory::ListItem> all;

  VariableSizeItems(std::size_t count, std::shared_ptr<std::atomic<std::uint64_t>> held_in)
      : all(count), held(std::move(held_in)) {}
  ~VariableSizeItems() { *held -= bytes; }
  VariableSizeItems(const VariableSizeItems&) = delete;
  VariableSizeItems& operator=(const VariableSizeItems&) = delete;

  // Called by the thread that owns the items: frees unused memory and counts the rest. Returns the number of bytes that
  // were held before.
  std::uint64_t tidy();

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> held;  // by all items of a pipeline
  std::uint64_t bytes = 0;                                 // its part
};

// Any thread.
class VariableSizeItemPool {
 public:
  explicit VariableSizeItemPool(std::size_t count) : count_(count) {}

  std::unique_ptr<VariableSizeItems> take();  // one slot's items; nullptr if there are no variable-size fields
  void give_back(std::unique_ptr<VariableSizeItems> items);
  // Returns the bytes held in the pool and in slots, as measured when each was last composed.
  std::uint64_t held_bytes() const { return *held_; }

 private:
  const std::size_t count_;  // items per slot
  const std::shared_ptr<std::atomic<std::uint64_t>> held_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::mutex mutex_;
  std::vector<std::unique_ptr<VariableSizeItems>> spare_;
};

}  // namespace feedline::pipeline
