// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "feedline/observe.h"

namespace feedline::observe {

// The machine's counters, and those of the cgroup that `pid` is in: version 2 where it has controllers, else version 1.
class Host {
 public:
  // root: where /proc and /sys are.
  Host(std::string root, std::int32_t pid);

  HostCounters sample(std::uint64_t now_ns) const;

  // Of the process's own group and all above it; nullopt: none.
  std::optional<double> quota_cpus() const;
  std::optional<double> memory_limit_bytes() const;

 private:
  std::optional<double> tightest(std::string folder, const std::string& file, const std::string& period) const;
  std::optional<std::uint64_t> pressure(const std::string& resource) const;

  std::string root_;
  std::string shared_memory_;  // the process's own /dev/shm: a container has another than its host
  std::string group_;          // folder of the version 2 cgroup, or empty
  std::string cpu_group_;      // of version 1
  std::string memory_group_;
  std::uint64_t tick_ns_;
};

}  // namespace feedline::observe
