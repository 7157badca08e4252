// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "telemetry/spans.h"
#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

// Counts one thread's work on its samples, per stage, and records it as spans.
class StageMeter {
 public:
  // counters: the thread's counters, which must outlive the meter; nullptr to count nothing.
  explicit StageMeter(telemetry::ThreadCounters* counters) : counters_(counters) {}

  // Sets the current sample, for spans.
  void begin(std::uint64_t sample) { sample_ = sample; }
  // Counts one item of work that began at `started_ns` and produced this many bytes.
  void count(telemetry::Stage stage, std::uint64_t started_ns, std::uint64_t bytes) {
    if (counters_ != nullptr) count(stage, started_ns, base::now_ns(), bytes);
  }
  void count(telemetry::Stage stage, std::uint64_t started_ns, std::uint64_t ended_ns, std::uint64_t bytes) {
    if (counters_ == nullptr) return;
    of(stage).add_item(ended_ns - started_ns, bytes);
    telemetry::record_span(stage, started_ns, ended_ns, sample_);
  }
  // Records the time of work whose items are counted elsewhere.
  void work(telemetry::Stage stage, std::uint64_t started_ns, std::uint64_t ended_ns) {
    if (counters_ == nullptr) return;
    of(stage).add_busy(ended_ns - started_ns);
    telemetry::record_span(stage, started_ns, ended_ns, sample_);
  }
  // Like count(), for several samples at once, starting with the current one.
  void count_many(telemetry::Stage stage, std::uint64_t samples, std::uint64_t started_ns, std::uint64_t bytes) {
    if (counters_ == nullptr) return;
    const std::uint64_t ended_ns = base::now_ns();
    of(stage).add_items(samples, ended_ns - started_ns, bytes);
    telemetry::record_span(stage, started_ns, ended_ns, sample_);
  }

 private:
  telemetry::StageCounters& of(telemetry::Stage stage) { return (*counters_)[static_cast<std::size_t>(stage)]; }

  telemetry::ThreadCounters* counters_;
  std::uint64_t sample_ = 0;
};

}  // namespace feedline::pipeline
