// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a process may use of the machine's CPUs and memory. The one reader of affinity masks, cpusets, quotas and
// limits: the engine, its bindings and so the Python package all ask here. Any thread may; nothing is kept between
// calls.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

struct CpuLimits {
  std::vector<int> allowed;     // by their numbers in the kernel: the affinity mask within the cpuset; never empty
  std::optional<double> quota;  // of CPU time, in CPUs; nullopt: none
  int around = 1;               // CPUs of the machine, or of the container: what launchers share out among ranks

  // CPU time that can be had per second, in CPUs: what a share of CPU time is measured against.
  double capacity() const;
  // Threads that can be kept running: a quota of 2.5 CPUs counts as 3, as with 2 the half would stay unused. At
  // least 1.
  int threads() const;
};

// pid 0: this process. `root` is a seam for tests: where /proc and /sys are.
CpuLimits cpu_limits(const std::string& root = "", std::int32_t pid = 0);

struct MemoryLimits {
  std::uint64_t physical_bytes = 0;
  std::uint64_t available_bytes = 0;                // of the machine, without taking anything from anybody
  std::optional<std::uint64_t> limit_bytes;         // the least of the cgroup and those around it; nullopt: none
  std::optional<std::uint64_t> binding_bytes;       // the limit of the group that has the least left,
  std::optional<std::uint64_t> binding_used_bytes;  // and how much of it is used, without page cache that gives way
  std::optional<std::uint64_t> swap_limit_bytes;
  std::optional<std::uint64_t> oom_kills;

  std::uint64_t usable_bytes() const;  // min(limit, physical)
  std::uint64_t left_bytes() const;    // min(available, what the binding group has left)
};
MemoryLimits memory_limits(const std::string& root = "", std::int32_t pid = 0);

// Which version of cgroups limits the process: 1 or 2. 0: none can be seen.
int cgroup_version(const std::string& root = "", std::int32_t pid = 0);

// CPUs of the machine that are switched on, whoever may use them.
int online_cpus();

// The affinity mask of the calling thread; empty where the system does not tell.
std::vector<int> affinity();

// cpu_limits().threads() of this process.
int usable_cpus();

// How long the cgroup's CPU quota has kept this process and its neighbours in the group from running. nullopt: not
// told.
std::optional<std::uint64_t> throttled_ns(const std::string& root = "");

// memory_limits().usable_bytes() of this process.
std::uint64_t usable_memory_bytes();

// The tightest limit along this process's cgroup path: "cpu.max" in CPUs, "memory.max" in bytes. nullopt: none set.
std::optional<double> cgroup_limit(const std::string& file, const std::string& root = "");

}  // namespace feedline::base
