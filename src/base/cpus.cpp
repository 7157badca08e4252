// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string_view>

namespace feedline::base {
namespace {

// "max" or a missing file: no limit. "cpu.max" holds "quota period".
std::optional<double> read_limit(const std::string& path) {
  std::ifstream file(path);
  std::string first;
  if (!(file >> first) || first == "max") return std::nullopt;
  double value = 0;
  if (!(std::istringstream(first) >> value) || value < 0) return std::nullopt;
  double period = 0;
  if (file >> period && period > 0) value /= period;
  return value;
}

// The path of this process in the unified (v2) hierarchy, from the "0::" line.
std::string unified_path(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "/";
}

// cgroup v1 keeps one file per number; a container sees its own group at the mount's top.
std::optional<double> read_v1_limit(const std::string& file, const std::string& root) {
  const std::string base = root + "/sys/fs/cgroup/";
  if (file == "memory.max") {
    const auto limit = read_limit(base + "memory/memory.limit_in_bytes");
    constexpr double kUnlimited = 0x1.0p60;  // v1 says "no limit" with a number near 2^63
    return limit && *limit < kUnlimited ? limit : std::nullopt;
  }
  if (file == "cpu.max") {
    const auto quota = read_limit(base + "cpu/cpu.cfs_quota_us");  // -1 without a quota: read_limit refuses it
    const auto period = read_limit(base + "cpu/cpu.cfs_period_us");
    if (quota && period && *period > 0) return *quota / *period;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> cgroup_limit(const std::string& file, const std::string& root) {
  std::optional<double> tightest;
  const auto take = [&tightest](std::optional<double> limit) {
    if (limit) tightest = tightest ? std::min(*tightest, *limit) : *limit;
  };
  // a parent's limit binds its children, so walk up to the mount's top
  for (std::string path = unified_path(root);; path = path.substr(0, path.rfind('/'))) {
    take(read_limit(root + "/sys/fs/cgroup" + path + (path.ends_with('/') ? "" : "/") + file));
    if (path.empty() || path == "/") break;
  }
  take(read_v1_limit(file, root));
  return tightest;
}

std::optional<std::uint64_t> throttled_ns(const std::string& root) {
  std::optional<std::uint64_t> total;
  const auto add = [&total](const std::string& path, std::string_view key, std::uint64_t unit_ns) {
    std::ifstream file(path);
    std::string word;
    for (std::uint64_t value = 0; file >> word >> value;)
      if (word == key) total = total.value_or(0) + value * unit_ns;
  };
  const std::string groups = root + "/sys/fs/cgroup";
  // each group counts what its own quota did
  for (std::string path = unified_path(root);; path = path.substr(0, path.rfind('/'))) {
    add(groups + path + (path.ends_with('/') ? "" : "/") + "cpu.stat", "throttled_usec", 1000);
    if (path.empty() || path == "/") break;
  }
  add(groups + "/cpu/cpu.stat", "throttled_time", 1);  // version 1
  return total;
}

int usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cpus = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask)
                                                           : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const auto quota = cgroup_limit("cpu.max")) cpus = std::min(cpus, static_cast<int>(std::ceil(*quota)));
  return std::max(cpus, 1);
}

std::uint64_t usable_memory_bytes() {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  std::uint64_t bytes = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (const auto limit = cgroup_limit("memory.max")) bytes = std::min(bytes, static_cast<std::uint64_t>(*limit));
  return bytes;
}

}  // namespace feedline::base
