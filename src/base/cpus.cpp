// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>

#include "base/control_groups.h"
#include "base/group_limits.h"

namespace feedline::base {
namespace {

constexpr int kMostCpus = 1 << 16;  // more than any kernel supports

// Returns the affinity mask of a process or thread, with a buffer that grows until the kernel's mask fits.
std::vector<int> mask_of(std::int32_t pid) {
  for (int most = CPU_SETSIZE; most <= kMostCpus; most *= 2) {
    const auto free = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(free)> set(CPU_ALLOC(static_cast<std::size_t>(most)), free);
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(most));
    if (set == nullptr || ::sched_getaffinity(pid, bytes, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < most; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    return cpus;
  }
  return {};
}

std::string line_behind(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return {};
}

// For a simulated machine, only its files are read.
std::vector<int> allowed_cpus(const std::string& root, std::int32_t pid) {
  if (root.empty()) return mask_of(pid);
  const std::string status = root + "/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + "/status";
  const std::string list = line_behind(status, "Cpus_allowed_list:");
  const std::size_t begin = list.find_first_of("0123456789");
  return begin == std::string::npos ? mask_of(0) : number_list(std::string_view(list).substr(begin));
}

std::optional<std::uint64_t> meminfo(const std::string& root, const std::string& key) {
  std::uint64_t kib = 0;
  if (!(std::istringstream(line_behind(root + "/proc/meminfo", key)) >> kib)) return std::nullopt;
  return kib * 1024;
}

}  // namespace

double CpuLimits::capacity() const {
  const auto cpus = static_cast<double>(allowed.size());
  return quota ? std::min(cpus, *quota) : cpus;
}

int CpuLimits::threads() const { return std::max(static_cast<int>(std::ceil(capacity())), 1); }

CpuLimits cpu_limits(const std::string& root, std::int32_t pid) {
  const ControlGroups groups(root, pid);
  const std::vector<int> container = outermost_cpuset(groups);
  CpuLimits limits{.allowed = allowed_cpus(root, pid),
                   .quota = quota_cpus(groups),
                   .around = container.empty() ? online_cpus() : static_cast<int>(container.size())};
  // The kernel restricts affinity masks to the cpuset, but sandboxes that emulate a kernel may not.
  if (const std::vector<int> set = cpuset(groups); !set.empty()) {
    std::vector<int> both;
    std::ranges::set_intersection(limits.allowed, set, std::back_inserter(both));
    if (!both.empty()) limits.allowed = std::move(both);
  }
  if (limits.allowed.empty()) {  // the process has ended, or the system does not report it
    limits.allowed.resize(static_cast<std::size_t>(online_cpus()));
    std::iota(limits.allowed.begin(), limits.allowed.end(), 0);
  }
  return limits;
}

std::uint64_t MemoryLimits::usable_bytes() const {
  return limit_bytes ? std::min(*limit_bytes, physical_bytes) : physical_bytes;
}

std::uint64_t MemoryLimits::left_bytes() const {
  if (!binding_bytes) return available_bytes;
  return std::min(available_bytes, *binding_bytes - std::min(*binding_bytes, binding_used_bytes.value_or(0)));
}

MemoryLimits memory_limits(const std::string& root, std::int32_t pid) {
  const GroupMemory group = group_memory(ControlGroups(root, pid));
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const std::uint64_t physical =
      meminfo(root, "MemTotal:").value_or(pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  return {.physical_bytes = physical,
          .available_bytes = meminfo(root, "MemAvailable:").value_or(physical),
          .limit_bytes = group.limit_bytes,
          .binding_bytes = group.binding_bytes,
          .binding_used_bytes = group.used_bytes,
          .swap_limit_bytes = group.swap_limit_bytes,
          .oom_kills = group.oom_kills};
}

int cgroup_version(const std::string& root, std::int32_t pid) { return ControlGroups(root, pid).version(); }

int online_cpus() { return std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1); }

std::vector<int> affinity() { return mask_of(0); }

int usable_cpus() { return cpu_limits().threads(); }

std::optional<std::uint64_t> throttled_ns(const std::string& root) { return throttled_ns(ControlGroups(root)); }

std::uint64_t usable_memory_bytes() { return memory_limits().usable_bytes(); }

std::optional<double> cgroup_limit(const std::string& file, const std::string& root) {
  const ControlGroups groups(root);
  if (file == "cpu.max") return quota_cpus(groups);
  if (file != "memory.max") return std::nullopt;
  const auto limit = group_memory(groups).limit_bytes;
  return limit ? std::optional(static_cast<double>(*limit)) : std::nullopt;
}

}  // namespace feedline::base
