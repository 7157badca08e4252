// SPDX-License-Identifier: Apache-2.0
#include "memory/sample_limit.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "base/cpus.h"

namespace feedline::memory {
namespace {

constexpr std::uint64_t kBudgetShare = 8;  // fraction of usable memory, the same as a loader's (memory_share.cpp)

}  // namespace

std::uint64_t sample_limit(std::uint64_t memory_budget) { return std::max(memory_budget, kLeastSampleBytes); }

std::uint64_t usual_sample_limit() {
  // Not a static const, because fork() during its initialization would leave the guard locked in the child. Threads
  // that compute the limit at the same time store the same value.
  static std::atomic<std::uint64_t> limit{0};
  if (const std::uint64_t known = limit.load(std::memory_order_relaxed)) return known;
  const std::uint64_t computed = sample_limit(base::usable_memory_bytes() / kBudgetShare);
  limit.store(computed, std::memory_order_relaxed);
  return computed;
}

std::unexpected<Error> too_large(std::uint64_t bytes, std::uint64_t most) {
  return data_error("the sample has " + std::to_string(bytes) + " bytes, over the limit of " + std::to_string(most) +
                        " (memory_budget, at least 256 MiB): raise memory_budget if this size is intended",
                    "storage");
}

}  // namespace feedline::memory
