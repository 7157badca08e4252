// SPDX-License-Identifier: Apache-2.0
#pragma once

// The current row of each thread, for stall messages. A thread writes its own Progress, and the consumer reads all of
// them without a lock, while it holds a reference to the slot it compares them with.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "feedline/error.h"
#include "pipeline/epoch/epoch.h"
#include "pipeline/sample/recipe.h"

namespace feedline::pipeline {

struct alignas(64) Progress {              // separate cache lines: neighbours belong to other threads
  std::atomic<const Slot*> slot{nullptr};  // if not nullptr, the slot is alive
  std::atomic<std::uint64_t> row{0};       // in the slot
  std::atomic<std::uint64_t> filled{0};    // rows of the slot, not yet finished
};

// The batch that the consumer waits for: the oldest in the epoch, with its number. Taken under the pipeline's lock.
struct AwaitedBatch {
  std::shared_ptr<const Slot> slot;  // nullptr if none is open
  std::uint64_t index = 0;

  static AwaitedBatch of(const Epoch* epoch);  // epoch may be nullptr
};

// Returns kStalled: no batch arrived for this long. Reports how many samples the awaited batch is missing, and the
// location of the first that a thread is processing.
Error stall_error(std::chrono::milliseconds waited, const AwaitedBatch& awaited, std::span<const Progress> threads,
                  const Recipe& recipe);

}  // namespace feedline::pipeline
