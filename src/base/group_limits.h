// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads limits and usage of control groups. Ancestors of a process's group limit it as well, so each reading covers all
// visible ancestors.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_groups.h"

namespace feedline::base {

// Returns the smallest quota in CPUs, such as 2.5, or nullopt if there is none.
std::optional<double> quota_cpus(const ControlGroups& groups);

// Returns the groups whose quota may throttle the process: its own group and ancestors that have a quota.
std::vector<ControlGroup> groups_with_quota(const ControlGroups& groups);

// cpuset() returns the CPUs of the process's cpuset, or an empty list if there is none. outermost_cpuset() returns the
// CPUs of the outermost visible cpuset.
std::vector<int> cpuset(const ControlGroups& groups);
std::vector<int> outermost_cpuset(const ControlGroups& groups);

// Returns the total time for which quotas have throttled the process's groups since their creation; nullopt if not
// reported.
std::optional<std::uint64_t> throttled_ns(const ControlGroups& groups);

struct GroupMemory {
  // The smallest limit at which the kernel kills a process (memory.max, limit_in_bytes) or throttles all processes to
  // reclaim memory (memory.high); nullopt if there is none.
  std::optional<std::uint64_t> limit_bytes;
  // Limit and usage (without reclaimable page cache) of the group that is closest to its memory limit, which may be an
  // ancestor.
  std::optional<std::uint64_t> binding_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> swap_limit_bytes;  // the least
  std::optional<std::uint64_t> oom_kills;         // number of the group's processes killed because memory ran out
};
GroupMemory group_memory(const ControlGroups& groups);

// Returns the groups whose memory limit applies to the process: its own group and ancestors that have a limit.
std::vector<ControlGroup> groups_with_memory_limit(const ControlGroups& groups);

// Parses "0-3,8,10-11", the kernel's list format for CPUs and nodes; parsing stops at the first invalid character.
std::vector<int> number_list(std::string_view text);

}  // namespace feedline::base
