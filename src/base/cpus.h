// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace feedline::base {

// CPUs that this process may use: min(affinity, cgroup v2 or v1 quota rounded up), at least 1. The affinity mask
// already holds what cpusets allow.
int usable_cpus();

// How long the cgroup's CPU quota has kept this process and its neighbours in the group from running. nullopt: not
// told.
std::optional<std::uint64_t> throttled_ns(const std::string& root = "");

// Bytes of memory that this process may use: min(cgroup limit, physical memory).
std::uint64_t usable_memory_bytes();

// Tightest limit along this process's cgroup path, for a v2 file such as "memory.max" or "cpu.max" (first number
// divided by the second there). nullopt: none set. `root` is a seam for tests: where /sys/fs/cgroup and /proc are.
std::optional<double> cgroup_limit(const std::string& file, const std::string& root = "");

}  // namespace feedline::base
