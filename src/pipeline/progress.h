// SPDX-License-Identifier: Apache-2.0
#pragma once

// What each thread is at, for the message of a stall. A thread writes its own Progress, without a lock; the consumer
// reads all of them under the pipeline's, which keeps the slots that it compares them with.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>

#include "feedline/error.h"
#include "pipeline/epoch.h"
#include "pipeline/source.h"

namespace feedline::pipeline {

struct alignas(64) Progress {              // own cache line: neighbours belong to other threads
  std::atomic<const Slot*> slot{nullptr};  // alive, where it is not nullptr
  std::atomic<std::uint64_t> row{0};       // of the slot
  std::atomic<std::uint64_t> filled{0};    // of the slot, and not yet finished
};

// kStalled: for so long there was no batch. Says how many samples the oldest batch of the epoch, which may be nullptr,
// still waits for, and names the first of them that a thread is at. Under the pipeline's lock.
Error stall_error(std::chrono::milliseconds waited, const Epoch* epoch, std::span<const Progress> threads,
                  const Recipe& recipe);

}  // namespace feedline::pipeline
