// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/progress.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace feedline::pipeline {

AwaitedBatch AwaitedBatch::of(const Epoch* epoch) {
  if (epoch == nullptr || epoch->open_slots() == 0) return {};
  return {epoch->oldest(), epoch->index_of(epoch->oldest()->batch)};
}

Error stall_error(std::chrono::milliseconds waited, const AwaitedBatch& awaited, std::span<const Progress> threads,
                  const Recipe& recipe) {
  Error error;
  error.code = ErrorCode::kStalled;
  const double seconds = static_cast<double>(waited.count()) / 1000.0;
  error.what = "no batch for " + std::to_string(seconds) + " s";
  if (awaited.slot) {
    const Slot& slot = *awaited.slot;
    // before the rows filled by threads: a row finished in between is then counted as missing
    std::uint64_t missing = slot.tickets.missing();
    std::optional<std::uint64_t> row;  // the first one in progress
    for (const Progress& thread : threads) {
      if (thread.slot.load(std::memory_order_acquire) != &slot) continue;
      missing -= std::min(missing, thread.filled.load(std::memory_order_relaxed));
      row = std::min(row.value_or(slot.rows), thread.row.load(std::memory_order_relaxed));
    }
    error.what += ": batch " + std::to_string(awaited.index) + " still waits for " + std::to_string(missing) + " of " +
                  std::to_string(slot.rows) + " samples";
    if (row && *row < slot.rows)
      error = with_location(std::move(error), recipe,
                            slot.plan ? slot.plan->at(slot.first + *row).sample : slot.samples[*row]);
  }
  error.where.stage = "batch";
  return error;
}

}  // namespace feedline::pipeline
