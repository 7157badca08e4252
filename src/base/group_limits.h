// SPDX-License-Identifier: Apache-2.0
#pragma once

// What control groups allow, and how much of it is used. A group around a process's own binds it as well, so each
// reading goes up to the last group that can be seen.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_groups.h"

namespace feedline::base {

// CPUs' worth of time, such as 2.5: the least quota. nullopt: none.
std::optional<double> quota_cpus(const ControlGroups& groups);

// The groups whose quota may stop the process: its own, and those around it that have one.
std::vector<ControlGroup> groups_with_quota(const ControlGroups& groups);

// The CPUs of the process's cpuset, and of the outermost one that can be seen; empty: there is none.
std::vector<int> cpuset(const ControlGroups& groups);
std::vector<int> outermost_cpuset(const ControlGroups& groups);

// How long quotas have kept the process's groups from running, since they were made. nullopt: not told.
std::optional<std::uint64_t> throttled_ns(const ControlGroups& groups);

struct GroupMemory {
  // The least limit: above it the kernel ends a process (memory.max, limit_in_bytes) or stops all to get memory back
  // (memory.high). nullopt: none.
  std::optional<std::uint64_t> limit_bytes;
  // Of the group that has the least left before somebody is killed, which may be another: what it may hold, and what it
  // holds without the page cache that gives way.
  std::optional<std::uint64_t> binding_bytes;
  std::optional<std::uint64_t> used_bytes;
  std::optional<std::uint64_t> swap_limit_bytes;  // the least
  std::optional<std::uint64_t> oom_kills;         // processes of the own group that were killed for lack of memory
};
GroupMemory group_memory(const ControlGroups& groups);

// The groups whose memory limit the process may meet: its own, and those around it that have one.
std::vector<ControlGroup> groups_with_memory_limit(const ControlGroups& groups);

// "0-3,8,10-11", as the kernel lists CPUs and nodes; what does not look like that ends the list.
std::vector<int> number_list(std::string_view text);

}  // namespace feedline::base
