// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records the spans of feedline/spans.h. If recording is off, the only cost is one relaxed load per unit of work.

#include <atomic>
#include <cstdint>

#include "feedline/spans.h"
#include "telemetry/stage_counters.h"

namespace feedline::telemetry {

namespace internal {
extern std::atomic<bool> recording;
void record(Span span);
}  // namespace internal

// Any thread. Requires: begin_ns <= end_ns, of base::now_ns().
inline void record_span(Stage stage, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t item) {
  // relaxed: a missing or extra span at the start or end of a recording does not matter
  if (!internal::recording.load(std::memory_order_relaxed)) return;
  internal::record({begin_ns, end_ns, item, 0, static_cast<std::uint32_t>(stage)});
}

}  // namespace feedline::telemetry
