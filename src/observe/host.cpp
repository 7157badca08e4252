// SPDX-License-Identifier: Apache-2.0
#include "observe/host.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "observe/proc_file.h"

namespace feedline::observe {
namespace {

// Read counts of block devices come in sectors of this size, whatever the device's own.
constexpr std::uint64_t kSectorBytes = 512;

// The folder of the first of `places` that has `file`. A container sees its own group at the mount's top, another
// process's path may lead below it.
std::string folder_with(const std::string& root, std::initializer_list<std::string> places, const std::string& file) {
  for (const std::string& place : places)
    if (::access((root + place + "/" + file).c_str(), R_OK) == 0) return root + place;
  return {};
}

// The path of a process in the hierarchy whose line begins so, such as "0::" or one with ":cpu," in it.
std::string path_in(std::string_view membership, std::string_view controller) {
  for (const std::string_view line : lines_of(membership)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string names = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    if (names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    const std::string path(line.substr(second + 1));
    return path == "/" ? "" : path;
  }
  return "";
}

// Empty, which is no file, where there is no such group.
std::string file_in(const std::string& folder, const std::string& file) {
  return folder.empty() ? std::string() : folder + "/" + file;
}

// The first line of /proc/stat is of all CPUs.
std::uint64_t busy_ticks(std::string_view stat) {
  if (!stat.starts_with("cpu ")) return 0;
  std::uint64_t ticks = 0;
  const auto words = words_of(stat.substr(0, stat.find('\n')));
  // user nice system, then idle and iowait, which are no work, then irq softirq steal
  for (const std::size_t i : {1u, 2u, 3u, 6u, 7u, 8u})
    if (i < words.size()) ticks += number(words[i]).value_or(0);
  return ticks;
}

// "max" or -1: no limit. "cpu.max" holds "quota period"; version 1 has a file for the period.
std::optional<double> limit_in(const std::string& folder, const std::string& file, const std::string& period_file) {
  const auto text = read_file(folder + "/" + file);
  const auto words = text ? words_of(*text) : std::vector<std::string_view>();
  const auto value = words.empty() ? std::nullopt : number(words[0]);
  if (!value) return std::nullopt;
  std::optional<std::uint64_t> period;
  if (words.size() > 1) period = number(words[1]);
  if (!period_file.empty())
    if (const auto other = read_file(folder + "/" + period_file); other && !words_of(*other).empty())
      period = number(words_of(*other)[0]);
  const double limit = static_cast<double>(*value);
  return period && *period > 0 ? limit / static_cast<double>(*period) : limit;
}

std::optional<double> used_share(const std::string& folder) {
  struct statvfs status {};
  if (folder.empty() || ::statvfs(folder.c_str(), &status) != 0 || status.f_blocks == 0) return std::nullopt;
  return 1.0 - static_cast<double>(status.f_bavail) / static_cast<double>(status.f_blocks);
}

std::string group_of(const std::string& root, std::string_view membership, std::string_view controller,
                     const std::string& file) {
  const std::string top = controller.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + std::string(controller);
  return folder_with(root, {top + path_in(membership, controller), top}, file);
}

std::string shared_memory_of(const std::string& root, std::int32_t pid) {
  const std::string own = root + "/proc/" + std::to_string(pid) + "/root/dev/shm", top = root + "/dev/shm";
  return ::access(own.c_str(), F_OK) == 0 ? own : ::access(top.c_str(), F_OK) == 0 ? top : "";
}

}  // namespace

Host::Host(const std::string& root, std::int32_t pid)
    : Host(root, pid, read_file(root + "/proc/" + std::to_string(pid) + "/cgroup").value_or("")) {}

Host::Host(const std::string& root, std::int32_t pid, std::string_view membership)
    : root_(root),
      shared_memory_(shared_memory_of(root_, pid)),
      group_(group_of(root_, membership, "", "cpu.stat")),
      cpu_group_(group_of(root_, membership, "cpu", "cpu.stat")),
      memory_group_(group_of(root_, membership, "memory", "memory.failcnt")),
      tick_ns_(1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))),
      cpu_stat_(file_in(group_, "cpu.stat")),
      memory_events_(file_in(group_, "memory.events")),
      cpu_stat_1_(file_in(cpu_group_, "cpu.stat")),
      memory_fails_(file_in(memory_group_, "memory.failcnt")),
      cpu_pressure_(pressure_file("cpu")),
      io_pressure_(pressure_file("io")),
      memory_pressure_(pressure_file("memory")),
      stat_(root_ + "/proc/stat"),
      meminfo_(root_ + "/proc/meminfo"),
      vmstat_(root_ + "/proc/vmstat"),
      diskstats_(root_ + "/proc/diskstats") {}

std::optional<double> Host::tightest(std::string folder, const std::string& file, const std::string& period) const {
  std::optional<double> limit;
  // a parent's limit binds its children
  for (; folder.size() > root_.size() + std::string_view("/sys/fs").size(); folder.resize(folder.rfind('/')))
    if (const auto one = limit_in(folder, file, period)) limit = limit ? std::min(*limit, *one) : *one;
  return limit;
}

std::optional<double> Host::quota_cpus() const {
  if (const auto quota = tightest(group_, "cpu.max", "")) return quota;
  return tightest(cpu_group_, "cpu.cfs_quota_us", "cpu.cfs_period_us");
}

std::optional<double> Host::memory_limit_bytes() const {
  constexpr double kUnlimited = 0x1.0p60;  // version 1 says "no limit" with a number near 2^63
  auto limit = tightest(group_, "memory.max", "");
  if (!limit) limit = tightest(memory_group_, "memory.limit_in_bytes", "");
  return limit && *limit < kUnlimited ? limit : std::nullopt;
}

// Of the group where that has pressure, else of the machine.
KeptFile Host::pressure_file(const std::string& resource) const {
  const std::string own = file_in(group_, resource + ".pressure");
  return KeptFile(::access(own.c_str(), R_OK) == 0 ? own : root_ + "/proc/pressure/" + resource);
}

std::optional<std::uint64_t> Host::pressure(KeptFile& file) {
  const auto text = file.read(buffer_);
  return text ? pressure_ns(*text) : std::nullopt;
}

std::optional<std::uint64_t> Host::sum_behind(KeptFile& file, std::initializer_list<std::string_view> keys) {
  const auto text = file.read(buffer_);
  if (!text) return std::nullopt;
  std::optional<std::uint64_t> sum;
  for (const std::string_view key : keys)
    if (const auto value = number_behind(*text, key)) sum = sum.value_or(0) + *value;
  return sum;
}

void Host::add_limits_met(HostCounters& counters) {
  if (const auto us = sum_behind(cpu_stat_, {"throttled_usec"}))
    counters.throttled_ns = *us * 1000;
  else
    counters.throttled_ns = sum_behind(cpu_stat_1_, {"throttled_time"});  // version 1: nanoseconds
  counters.memory_events = sum_behind(memory_events_, {"max", "oom"});
  if (!counters.memory_events)
    if (const auto text = memory_fails_.read(buffer_))
      counters.memory_events = number(text->substr(0, text->find('\n')));
}

void Host::add_memory(HostCounters& counters) {
  bool swaps = true;
  if (const auto memory = meminfo_.read(buffer_)) {
    counters.available_bytes = number_behind(*memory, "MemAvailable").value_or(0) * 1024;
    swaps = number_behind(*memory, "SwapTotal") != 0u;
  }
  // the dearest of these files: the kernel sums its hundreds of counters over all CPUs
  if (swaps) counters.swapped_pages = sum_behind(vmstat_, {"pswpin", "pswpout"}).value_or(0);
}

// Whole devices alone: what partitions and device-mapper volumes read is counted below them once more.
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
    const auto words = words_of(line);  // major minor name reads merged sectors milliseconds ...
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
