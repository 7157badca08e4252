// SPDX-License-Identifier: Apache-2.0
#pragma once

// The row that each thread is processing, for messages about stalls. Each thread writes its own Progress. The consumer
// reads the Progress of all threads without a lock, while it holds a reference to the slot with which it compares them.

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

// The batch for which the consumer waits, which is the oldest in the epoch, and its number. The batch is determined
// under the pipeline's lock.
struct AwaitedBatch {
  std::shared_ptr<const Slot> slot;  // nullptr if none is open
  std::uint64_t index = 0;

  static AwaitedBatch of(const Epoch* epoch);  // epoch may be nullptr
};

// Returns a kStalled error, which reports that no batch has arrived for this long. The message reports how many samples
// of the awaited batch are missing, and the location of the first one that a thread is processing.
Error stall_error(std::chrono::milliseconds waited, const AwaitedBatch& awaited, std::span<const Progress> threads,
                  const Recipe& recipe);

}  // namespace feedline::pipeline
