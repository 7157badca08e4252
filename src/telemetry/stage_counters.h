// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counters for each stage of each thread. A thread owns one StageCounters per stage and is its only writer, so an
// update is a plain load and store. Readers may sum over threads at any time; values are at most one update old.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace feedline::telemetry {

enum class Stage : std::uint8_t { kStorage, kDecode, kTransform, kBatch, kConsumer };
inline constexpr int kStages = 5;
std::string_view name_of(Stage stage);

// The latency of a unit of work, in powers of two of a microsecond: bucket b counts [2^b, 2^(b+1)) us. Bucket 0 also
// counts all faster units, and the last bucket all slower ones (2^24 us is 16 s).
inline constexpr int kLatencyBuckets = 25;

// A copy of the counters, summed over threads.
struct StageTotals {
  std::uint64_t items = 0;       // samples; for kBatch and kConsumer batches
  std::uint64_t bytes = 0;       // output of the stage
  std::uint64_t busy_ns = 0;     // working
  std::uint64_t blocked_ns = 0;  // waiting for room downstream
  std::uint64_t starved_ns = 0;  // waiting for input
  std::array<std::uint64_t, kLatencyBuckets> latency{};
};

class alignas(64) StageCounters {  // separate cache lines: neighbours belong to other threads
 public:
  // Counts one unit of work.
  void add_item(std::uint64_t busy_ns, std::uint64_t bytes) { add_items(1, busy_ns, bytes); }
  // Counts several units that were done together, and divides busy_ns among them. Requires: count > 0.
  void add_items(std::uint64_t count, std::uint64_t busy_ns, std::uint64_t bytes);
  void add_busy(std::uint64_t ns) { bump(busy_ns_, ns); }       // work on an item counted by another call or thread
  void add_bytes(std::uint64_t bytes) { bump(bytes_, bytes); }  // of an item counted by another call
  void add_blocked(std::uint64_t ns) { bump(blocked_ns_, ns); }
  void add_starved(std::uint64_t ns) { bump(starved_ns_, ns); }
  void add_to(StageTotals& totals) const;

 private:
  using Counter = std::atomic<std::uint64_t>;
  // single writer: no read-modify-write needed; relaxed because counters order nothing
  static void bump(Counter& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  Counter items_{0}, bytes_{0}, busy_ns_{0}, blocked_ns_{0}, starved_ns_{0};
  std::array<Counter, kLatencyBuckets> latency_{};
};

using ThreadCounters = std::array<StageCounters, kStages>;

}  // namespace feedline::telemetry
