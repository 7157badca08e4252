// SPDX-License-Identifier: Apache-2.0
#pragma once

// The limits of control groups, and their usage. Ancestors of a process's group limit it as well, so each reading
// covers all visible ancestors.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_groups.h"

namespace feedline::base {

// The smallest quota, in CPUs, such as 2.5; nullopt if there is none.
std::optional<double> quota_cpus(const ControlGroups& groups);

// The groups whose quota may throttle the process: its own and its ancestors, if they have a quota.
std::vector<ControlGroup> groups_with_quota(const ControlGroups& groups);

// The CPUs of the process's cpuset and of the outermost visible one; empty if there is none.
std::vector<int> cpuset(const ControlGroups& groups);
std::vector<int> outermost_cpuset(const ControlGroups& groups);

// The total time that quotas have throttled the process's groups since their creation. nullopt: not reported.
std::optional<std::uint64_t> throttled_ns(const ControlGroups& groups);

struct GroupMemory {
  // The smallest limit at which the kernel kills a process (memory.max, limit_in_bytes) or throttles all to reclaim
  // memory (memory.high). nullopt if there is none.
  std::optional<std::uint64_t> limit_bytes;
  // For the group that is closest to its memory limit, possibly an ancestor: the limit, and its usage without
  // reclaimable page cache.
  std::optional<std::uint64_t> binding_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> swap_limit_bytes;  // the least
  std::optional<std::uint64_t> oom_kills;         // number of the group's processes killed for lack of memory
};
GroupMemory group_memory(const ControlGroups& groups);

// The groups whose memory limit applies to the process: its own and its ancestors, if they have a limit.
std::vector<ControlGroup> groups_with_memory_limit(const ControlGroups& groups);

// Parses "0-3,8,10-11", the kernel's list format for CPUs and nodes; anything invalid ends the list.
std::vector<int> number_list(std::string_view text);

}  // namespace feedline::base
