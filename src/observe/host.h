// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_groups.h"
#include "feedline/observe.h"
#include "observe/proc_file.h"

namespace feedline::observe {

// The machine's counters, and those of the cgroups that `pid` is in, of either version.
class Host {
 public:
  // root: where /proc and /sys are.
  Host(const std::string& root, std::int32_t pid);

  HostCounters sample(std::uint64_t now_ns);

  // Of the process's own group and all above it; nullopt: none.
  std::optional<double> quota_cpus() const;
  std::optional<double> memory_limit_bytes() const;

 private:
  KeptFile pressure_file(const std::string& resource) const;
  std::optional<std::uint64_t> pressure(KeptFile& file);
  std::optional<std::uint64_t> sum_behind(KeptFile& file, std::initializer_list<std::string_view> keys);
  void keep_files_of_limits();
  std::optional<std::uint64_t> memory_events();
  void add_limits_met(HostCounters& counters);
  void add_memory(HostCounters& counters);
  void add_disks(HostCounters& counters);
  bool is_whole_device(std::string_view name);

  std::string root_;
  std::string shared_memory_;  // the process's own /dev/shm: a container has another than its host
  base::ControlGroups groups_;
  std::uint64_t tick_ns_;
  // read in every sample
  // of the process's own groups and of those around them that have a limit: each counts what its own limit did
  std::vector<KeptFile> cpu_stats_;
  std::vector<KeptFile> memory_events_;  // of version 2
  std::vector<KeptFile> memory_fails_;   // of version 1
  KeptFile cpu_pressure_, io_pressure_, memory_pressure_;
  KeptFile stat_, meminfo_, vmstat_, diskstats_;
  std::map<std::string, bool, std::less<>> whole_devices_;  // by name
  std::string buffer_;
};

}  // namespace feedline::observe
