// SPDX-License-Identifier: Apache-2.0
#pragma once

// Measures the resources that a pipeline's threads and its process have used so far. This is the part of a measurement
// that needs system calls. Each measurement makes one system call per thread and reads the CPU quota file if there is
// one, so it must not run under the pipeline's lock.

#include <time.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "telemetry/stage_counters.h"

namespace feedline::pipeline {

// All values are in nanoseconds; only differences are meaningful.
struct Usage {
  std::uint64_t reading_ns = 0;    // time of all threads spent reading storage
  std::uint64_t workers_ns = 0;    // CPU time of the threads
  std::uint64_t process_ns = 0;    // CPU time of the process
  std::uint64_t throttled_ns = 0;  // time throttled by the CPU quota
};

class ThreadUsage {
 public:
  explicit ThreadUsage(std::size_t workers);

  // Registers the calling thread as this worker.
  void add_worker(std::size_t worker);
  // Called by the consumer's thread.
  Usage read(std::span<const telemetry::ThreadCounters> threads);

 private:
  struct Worker {
    std::atomic<clockid_t> clock{CLOCK_REALTIME};  // CLOCK_REALTIME is never a thread's own clock: it has not started
    std::uint64_t cpu_ns = 0;                      // last value: the clock of a finished thread no longer exists
  };

  const bool has_quota_;  // of CPU time: throttling is possible
  std::vector<Worker> workers_;
  std::uint64_t process_ns_ = 0;
};

}  // namespace feedline::pipeline
