// SPDX-License-Identifier: Apache-2.0
#include "pipeline/workers/thread_usage.h"

#include <pthread.h>

#include "base/cpus.h"

namespace feedline::pipeline {
namespace {

std::uint64_t read_clock(clockid_t clock, std::uint64_t otherwise) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return otherwise;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

ThreadUsage::ThreadUsage(std::size_t workers)
    : has_quota_(base::cgroup_limit("cpu.max").has_value()), workers_(workers) {}

void ThreadUsage::add_worker(std::size_t worker) {
  clockid_t clock{};
  // relaxed: no other data depends on it
  if (::pthread_getcpuclockid(::pthread_self(), &clock) == 0)
    workers_[worker].clock.store(clock, std::memory_order_relaxed);
}

Usage ThreadUsage::read(std::span<const telemetry::ThreadCounters> threads) {
  Usage now;
  telemetry::StageTotals reading;
  for (const auto& thread : threads) thread[static_cast<std::size_t>(telemetry::Stage::kStorage)].add_to(reading);
  now.reading_ns = reading.busy_ns;
  for (Worker& worker : workers_) {
    const clockid_t clock = worker.clock.load(std::memory_order_relaxed);
    if (clock != CLOCK_REALTIME) worker.cpu_ns = read_clock(clock, worker.cpu_ns);
    now.workers_ns += worker.cpu_ns;
  }
  now.process_ns = process_ns_ = read_clock(CLOCK_PROCESS_CPUTIME_ID, process_ns_);
  if (has_quota_) now.throttled_ns = base::throttled_ns().value_or(0);
  return now;
}

}  // namespace feedline::pipeline
