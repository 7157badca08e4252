// SPDX-License-Identifier: Apache-2.0
#pragma once

// The CPUs and memory that a process may use. The engine, the bindings and the Python package read affinity masks,
// cpusets, quotas and limits only through these functions. Thread-safe; no results are cached.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

struct CpuLimits {
  std::vector<int> allowed;     // kernel numbers of the CPUs in the affinity mask and cpuset; never empty
  std::optional<double> quota;  // CPU quota, in CPUs; nullopt if there is none
  int around = 1;               // CPUs of the machine or container, which launchers divide among ranks

  // The available CPU time per second, in CPUs: the denominator for fractions of CPU time.
  double capacity() const;
  // The number of threads that can be kept busy: 3 for a quota of 2.5 CPUs, because 2 threads would leave half a CPU
  // unused. At least 1.
  int threads() const;
};

// pid 0: this process. `root` replaces the location of /proc and /sys in tests.
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

// Returns the cgroup version that limits the process: 1 or 2. 0: none is visible.
int cgroup_version(const std::string& root = "", std::int32_t pid = 0);

// Returns the number of online CPUs of the machine, whether or not this process may use them.
int online_cpus();

// Returns the affinity mask of the calling thread, or an empty list if the system does not report it.
std::vector<int> affinity();

// Returns cpu_limits().threads() for this process.
int usable_cpus();

// Returns the total time for which the cgroup's CPU quota has throttled the processes in this process's group; nullopt
// if not reported.
std::optional<std::uint64_t> throttled_ns(const std::string& root = "");

// Returns memory_limits().usable_bytes() for this process.
std::uint64_t usable_memory_bytes();

// Returns the tightest limit along this process's cgroup path: "cpu.max" in CPUs, "memory.max" in bytes; nullopt if no
// limit is set.
std::optional<double> cgroup_limit(const std::string& file, const std::string& root = "");

}  // namespace feedline::base
