// SPDX-License-Identifier: Apache-2.0
#pragma once

// The CPUs and memory that a process may use. Only this code reads affinity masks, cpusets, quotas and limits; the
// engine, its bindings and the Python package all use it. Thread-safe; nothing is cached between calls.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

struct CpuLimits {
  std::vector<int> allowed;     // kernel numbers of the CPUs in the affinity mask and cpuset; never empty
  std::optional<double> quota;  // CPU quota, in CPUs; nullopt if there is none
  int around = 1;               // CPUs of the machine or container, which launchers divide among ranks

  // Available CPU time per second, in CPUs: the basis for fractions of CPU time.
  double capacity() const;
  // The number of threads that can be kept busy: for a quota of 2.5 CPUs this is 3, since 2 threads would leave half a
  // CPU unused. At least 1.
  int threads() const;
};

// pid 0: this process. `root` is the location of /proc and /sys, replaceable in tests.
CpuLimits cpu_limits(const std::string& root = "", std::int32_t pid = 0);

struct MemoryLimits {
  std::uint64_t physical_bytes = 0;
  std::uint64_t available_bytes = 0;                // memory of the machine that is available without reclaiming from
                                                    // other processes
  std::optional<std::uint64_t> limit_bytes;         // the smallest limit of the cgroup and its ancestors; nullopt if
                                                    // there is none
  std::optional<std::uint64_t> binding_bytes;       // the limit of the group with the least memory left
  std::optional<std::uint64_t> binding_used_bytes;  // that group's usage without reclaimable page cache
  std::optional<std::uint64_t> swap_limit_bytes;
  std::optional<std::uint64_t> oom_kills;

  std::uint64_t usable_bytes() const;  // min(limit, physical)
  std::uint64_t left_bytes() const;    // min(available, free memory of the most restrictive group)
};
MemoryLimits memory_limits(const std::string& root = "", std::int32_t pid = 0);

// The cgroup version that limits the process: 1 or 2. 0: none is visible.
int cgroup_version(const std::string& root = "", std::int32_t pid = 0);

// The machine's online CPUs, whether or not this process may use them.
int online_cpus();

// The affinity mask of the calling thread; empty if the system does not report it.
std::vector<int> affinity();

// cpu_limits().threads() of this process.
int usable_cpus();

// The total time that the cgroup's CPU quota has throttled this process and others in the group. nullopt: not reported.
std::optional<std::uint64_t> throttled_ns(const std::string& root = "");

// memory_limits().usable_bytes() of this process.
std::uint64_t usable_memory_bytes();

// The tightest limit along this process's cgroup path: "cpu.max" in CPUs, "memory.max" in bytes. nullopt: none set.
std::optional<double> cgroup_limit(const std::string& file, const std::string& root = "");

}  // namespace feedline::base
