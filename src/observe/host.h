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

// The counters of the machine and of the cgroups of `pid`, version 1 or 2.
class Host {
 public:
  // root: the folder that contains /proc and /sys.
  Host(const std::string& root, std::int32_t pid);

  HostCounters sample(std::uint64_t now_ns);

  // Returns the minimum quota of the process's own group and all its ancestors; nullopt if there is none.
  std::optional<double> quota_cpus() const;
  std::optional<double> memory_limit_bytes() const;

 private:
  OpenProcFile pressure_file(const std::string& resource) const;
  std::optional<std::uint64_t> pressure(OpenProcFile& file);
  std::optional<std::uint64_t> sum_behind(OpenProcFile& file, std::initializer_list<std::string_view> keys);
  void keep_files_of_limits();
  std::optional<std::uint64_t> memory_events();
  void add_limits_met(HostCounters& counters);
  void add_memory(HostCounters& counters);
  void add_disks(HostCounters& counters);
  bool is_whole_device(std::string_view name);

  std::string root_;
  std::string shared_memory_;  // the process's own /dev/shm: a container's differs from its host's
  base::ControlGroups groups_;
  std::uint64_t tick_ns_;
  // These files are read for every sample. The files belong to the process's own groups and to those ancestors that
  // have a limit; each file counts the effect of its own group's limit.
  std::vector<OpenProcFile> cpu_stats_;
  std::vector<OpenProcFile> memory_events_;  // of version 2
  std::vector<OpenProcFile> memory_fails_;   // of version 1
  OpenProcFile cpu_pressure_, io_pressure_, memory_pressure_;
  OpenProcFile stat_, meminfo_, vmstat_, diskstats_;
  std::map<std::string, bool, std::less<>> whole_devices_;  // by name
  std::string buffer_;
};

}  // namespace feedline::observe
