// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stage_counters.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace feedline::telemetry {

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::kStorage:
      return "storage";
    case Stage::kDecode:
      return "decode";
    case Stage::kTransform:
      return "transform";
    case Stage::kBatch:
      return "batch";
    case Stage::kConsumer:
      return "consumer";
  }
  FEEDLINE_CHECK(!"unknown stage");
}

void StageCounters::add_items(std::uint64_t count, std::uint64_t busy_ns, std::uint64_t bytes) {
  bump(items_, count);
  bump(bytes_, bytes);
  bump(busy_ns_, busy_ns);
  const std::uint64_t us = (count == 1 ? busy_ns : busy_ns / count) / 1000;
  const int bucket = us == 0 ? 0 : static_cast<int>(std::bit_width(us)) - 1;
  bump(latency_[static_cast<std::size_t>(std::min(bucket, kLatencyBuckets - 1))], count);
}

void StageCounters::add_to(StageTotals& totals) const {
  totals.items += items_.load(std::memory_order_relaxed);
  totals.bytes += bytes_.load(std::memory_order_relaxed);
  totals.busy_ns += busy_ns_.load(std::memory_order_relaxed);
  totals.blocked_ns += blocked_ns_.load(std::memory_order_relaxed);
  totals.starved_ns += starved_ns_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < latency_.size(); ++i) totals.latency[i] += latency_[i].load(std::memory_order_relaxed);
}

}  // namespace feedline::telemetry
