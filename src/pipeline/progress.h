// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each thread is at, for the message of a stall. A thread writes its own Progress, and the consumer reads all of
// them, without a lock: it keeps the slot that it compares them with.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "feedline/error.h"
#include "pipeline/epoch.h"
#include "pipeline/recipe.h"

namespace feedline::pipeline {

struct alignas(64) Progress {              // own cache line: neighbours belong to other threads
  std::atomic<const Slot*> slot{nullptr};  // alive, where it is not nullptr
  std::atomic<std::uint64_t> row{0};       // of the slot
  std::atomic<std::uint64_t> filled{0};    // of the slot, and not yet finished
};

// The batch that the consumer waits for: the oldest one of the epoch, and its number. Taken under the pipeline's lock.
struct AwaitedBatch {
  std::shared_ptr<const Slot> slot;  // nullptr: none is open
  std::uint64_t index = 0;

  static AwaitedBatch of(const Epoch* epoch);  // which may be nullptr
};

// kStalled: for so long there was no batch. Says how many samples the awaited one still waits for, and names the first
// of them that a thread is at.
Error stall_error(std::chrono::milliseconds waited, const AwaitedBatch& awaited, std::span<const Progress> threads,
                  const Recipe& recipe);

}  // namespace feedline::pipeline
