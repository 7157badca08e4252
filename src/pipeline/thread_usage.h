// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the threads of a pipeline, and its process, have used so far: the part of an interval that the system is asked
// for. One question for each thread, and a file of the CPU quota where there is one: never under the pipeline's lock.

#include <time.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

// Nanoseconds; only differences mean something.
struct Usage {
  std::uint64_t reading_ns = 0;    // of all threads: getting stored bytes
  std::uint64_t workers_ns = 0;    // CPU time of the threads
  std::uint64_t process_ns = 0;    // CPU time of the process
  std::uint64_t throttled_ns = 0;  // that the CPU quota kept it from running
};

class ThreadUsage {
 public:
  explicit ThreadUsage(std::size_t workers);

  // The calling thread is that worker.
  void add_worker(std::size_t worker);
  // For the consumer's thread.
  Usage read(std::span<const telemetry::ThreadCounters> threads);

 private:
  struct Worker {
    std::atomic<clockid_t> clock{CLOCK_REALTIME};  // that one, which no thread has for its own: it has not begun
    std::uint64_t cpu_ns = 0;                      // as last read: the clock of a thread that has ended is gone
  };

  const bool has_quota_;  // of CPU time: then there may be throttling
  std::vector<Worker> workers_;
  std::uint64_t process_ns_ = 0;
};

}  // namespace feedline::pipeline
