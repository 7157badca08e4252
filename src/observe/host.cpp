// SPDX-License-Identifier: Apache-2.0
#include "observe/host.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/group_limits.h"
#include "observe/proc_file.h"

namespace feedline::observe {
namespace {

// The unit of block devices' read counts, regardless of the device's own sector size.
constexpr std::uint64_t kSectorBytes = 512;

// Returns an empty path if `folder` is empty (the group does not exist).
std::string file_in(const std::string& folder, const std::string& file) {
  return folder.empty() ? std::string() : folder + "/" + file;
}

// Returns the busy time of all CPUs, from the first line of /proc/stat.
std::uint64_t busy_ticks(std::string_view stat) {
  if (!stat.starts_with("cpu ")) return 0;
  std::uint64_t ticks = 0;
  const auto words = words_of(stat.substr(0, stat.find('\n')));
  // user nice system, then idle and iowait, which are not work, then irq softirq steal
  for (const std::size_t i : {1u, 2u, 3u, 6u, 7u, 8u})
    if (i < words.size()) ticks += number(words[i]).value_or(0);
  return ticks;
}

std::optional<double> used_share(const std::string& folder) {
  struct statvfs status {};
  if (folder.empty() || ::statvfs(folder.c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  return 1.0 - static_cast<double>(status.f_bavail) / static_cast<double>(status.f_blocks);
}

std::string shared_memory_of(const std::string& root, std::int32_t pid) {
  const std::string top = root + "/dev/shm", own = root + "/proc/" + std::to_string(pid) + "/root" + "/dev/shm";
  return ::access(own.c_str(), F_OK) == 0 ? own : ::access(top.c_str(), F_OK) == 0 ? top : "";
}

}  // namespace

Host::Host(const std::string& root, std::int32_t pid)
    : root_(root),
      shared_memory_(shared_memory_of(root_, pid)),
      groups_(root_, pid),
      tick_ns_(1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))),
      cpu_pressure_(pressure_file("cpu")),
      io_pressure_(pressure_file("io")),
      memory_pressure_(pressure_file("memory")),
      stat_(root_ + "/proc/stat"),
      meminfo_(root_ + "/proc/meminfo"),
      vmstat_(root_ + "/proc/vmstat"),
      diskstats_(root_ + "/proc/diskstats") {
  keep_files_of_limits();
}

void Host::keep_files_of_limits() {
  for (const auto& group : base::groups_with_quota(groups_)) cpu_stats_.emplace_back(group.folder + "/cpu.stat");
  for (const auto& group : base::groups_with_memory_limit(groups_)) {
    // the process's own group also counts events in its child groups, as its processes may be there
    const bool is_own = group.folder == groups_.own_folder("memory", 2);
    if (group.version == 2)
      memory_events_.emplace_back(group.folder + (is_own ? "/memory.events" : "/memory.events.local"));
    else
      memory_fails_.emplace_back(group.folder + "/memory.failcnt");
  }
}

std::optional<double> Host::quota_cpus() const { return base::quota_cpus(groups_); }

std::optional<double> Host::memory_limit_bytes() const {
  const auto limit = base::group_memory(groups_).limit_bytes;
  return limit ? std::optional(static_cast<double>(*limit)) : std::nullopt;
}

// Opens the group's file if it exists, otherwise the machine's file.
OpenProcFile Host::pressure_file(const std::string& resource) const {
  const std::string own = file_in(groups_.own_folder(resource, 2), resource + ".pressure");
  return OpenProcFile(::access(own.c_str(), R_OK) == 0 ? own : root_ + "/proc/pressure/" + resource);
}

std::optional<std::uint64_t> Host::pressure(OpenProcFile& file) {
  const auto text = file.read(buffer_);
  return text ? pressure_ns(*text) : std::nullopt;
}

std::optional<std::uint64_t> Host::sum_behind(OpenProcFile& file, std::initializer_list<std::string_view> keys) {
  const auto text = file.read(buffer_);
  if (!text) return std::nullopt;
  std::optional<std::uint64_t> sum;
  for (const std::string_view key : keys)
    if (const auto value = number_behind(*text, key)) sum = sum.value_or(0) + *value;
  return sum;
}

std::optional<std::uint64_t> Host::memory_events() {
  std::optional<std::uint64_t> sum;
  for (OpenProcFile& file : memory_events_)
    if (const auto events = sum_behind(file, {"max", "oom"})) sum = sum.value_or(0) + *events;
  if (sum) return sum;
  for (OpenProcFile& file : memory_fails_)
    if (const auto text = file.read(buffer_))
      if (const auto fails = number(text->substr(0, text->find('\n')))) sum = sum.value_or(0) + *fails;
  return sum;
}

void Host::add_limits_met(HostCounters& counters) {
  for (OpenProcFile& file : cpu_stats_) {
    auto ns = sum_behind(file, {"throttled_time"});  // version 1: nanoseconds
    if (const auto us = sum_behind(file, {"throttled_usec"})) ns = *us * 1000;
    if (ns) counters.throttled_ns = counters.throttled_ns.value_or(0) + *ns;
  }
  counters.memory_events = memory_events();
}

void Host::add_memory(HostCounters& counters) {
  bool swaps = true;
  if (const auto memory = meminfo_.read(buffer_)) {
    counters.available_bytes = number_behind(*memory, "MemAvailable").value_or(0) * 1024;
    swaps = number_behind(*memory, "SwapTotal") != 0u;
  }
  // the most expensive of these files: the kernel sums its hundreds of counters over all CPUs
  if (swaps) counters.swapped_pages = sum_behind(vmstat_, {"pswpin", "pswpout"}).value_or(0);
}

// Counts only whole devices, because reads of partitions and device-mapper volumes are also counted in their underlying
// devices.
bool Host::is_whole_device(std::string_view name) {
  if (const auto known = whole_devices_.find(name); known != whole_devices_.end()) return known->second;
  const std::string folder = root_ + "/sys/block/" + std::string(name);
  bool whole = ::access(folder.c_str(), F_OK) == 0;
  for (const std::string_view layer : {"loop", "ram", "zram", "dm-", "md"}) whole = whole && !name.starts_with(layer);
  whole_devices_.emplace(name, whole);
  return whole;
}

void Host::add_disks(HostCounters& counters) {
  const auto disks = diskstats_.read(buffer_);
  if (!disks) return;
  for (const std::string_view line : lines_of(*disks)) {
    const auto words = words_of(line);  // The columns are: major minor name reads merged sectors milliseconds ...
    if (words.size() < 7 || !is_whole_device(words[2])) continue;
    counters.disk_reads += number(words[3]).value_or(0);
    counters.disk_bytes += number(words[5]).value_or(0) * kSectorBytes;
    counters.disk_read_ns += number(words[6]).value_or(0) * 1'000'000;
  }
}

HostCounters Host::sample(std::uint64_t now_ns) {
  HostCounters counters;
  counters.time_ns = now_ns;
  if (const auto stat = stat_.read(buffer_)) counters.busy_ns = busy_ticks(*stat) * tick_ns_;
  add_limits_met(counters);
  counters.cpu_pressure_ns = pressure(cpu_pressure_);
  counters.io_pressure_ns = pressure(io_pressure_);
  counters.memory_pressure_ns = pressure(memory_pressure_);
  add_memory(counters);
  add_disks(counters);
  counters.shared_memory_used = used_share(shared_memory_);
  return counters;
}

}  // namespace feedline::observe
