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
    if (read_file(root + place + "/" + file)) return root + place;
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

std::optional<std::uint64_t> sum_behind(const std::string& file, std::initializer_list<std::string_view> keys) {
  const auto text = read_file(file);
  if (!text) return std::nullopt;
  std::optional<std::uint64_t> sum;
  for (const std::string_view key : keys)
    if (const auto value = number_behind(*text, key)) sum = sum.value_or(0) + *value;
  return sum;
}

std::uint64_t busy_ticks(std::string_view stat) {
  for (const std::string_view line : lines_of(stat)) {
    if (!line.starts_with("cpu ")) continue;
    std::uint64_t ticks = 0;
    const auto words = words_of(line);
    // user nice system, then idle and iowait, which are no work, then irq softirq steal
    for (const std::size_t i : {1u, 2u, 3u, 6u, 7u, 8u})
      if (i < words.size()) ticks += number(words[i]).value_or(0);
    return ticks;
  }
  return 0;
}

// Whole devices alone: what partitions and device-mapper volumes read is counted below them once more.
bool is_whole_device(const std::string& root, std::string_view name) {
  for (const std::string_view layer : {"loop", "ram", "zram", "dm-", "md"})
    if (name.starts_with(layer)) return false;
  return ::access((root + "/sys/block/" + std::string(name)).c_str(), F_OK) == 0;
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

}  // namespace

Host::Host(std::string root, std::int32_t pid)
    : root_(std::move(root)), tick_ns_(1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))) {
  const std::string membership = read_file(root_ + "/proc/" + std::to_string(pid) + "/cgroup").value_or("");
  const std::string top = "/sys/fs/cgroup";
  group_ = folder_with(root_, {top + path_in(membership, ""), top}, "cpu.stat");
  cpu_group_ = folder_with(root_, {top + "/cpu" + path_in(membership, "cpu"), top + "/cpu"}, "cpu.stat");
  memory_group_ =
      folder_with(root_, {top + "/memory" + path_in(membership, "memory"), top + "/memory"}, "memory.failcnt");
  const std::string own = root_ + "/proc/" + std::to_string(pid) + "/root/dev/shm", top_shm = root_ + "/dev/shm";
  shared_memory_ = ::access(own.c_str(), F_OK) == 0 ? own : ::access(top_shm.c_str(), F_OK) == 0 ? top_shm : "";
}

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

std::optional<std::uint64_t> Host::pressure(const std::string& resource) const {
  if (!group_.empty())
    if (const auto text = read_file(group_ + "/" + resource + ".pressure")) return pressure_ns(*text);
  const auto text = read_file(root_ + "/proc/pressure/" + resource);
  return text ? pressure_ns(*text) : std::nullopt;
}

HostCounters Host::sample(std::uint64_t now_ns) const {
  HostCounters counters;
  counters.time_ns = now_ns;
  if (const auto stat = read_file(root_ + "/proc/stat")) counters.busy_ns = busy_ticks(*stat) * tick_ns_;
  if (!group_.empty()) {
    if (const auto us = sum_behind(group_ + "/cpu.stat", {"throttled_usec"})) counters.throttled_ns = *us * 1000;
    counters.memory_events = sum_behind(group_ + "/memory.events", {"max", "oom"});
  }
  if (!counters.throttled_ns && !cpu_group_.empty())
    counters.throttled_ns = sum_behind(cpu_group_ + "/cpu.stat", {"throttled_time"});  // version 1: nanoseconds
  if (!counters.memory_events && !memory_group_.empty())
    if (const auto text = read_file(memory_group_ + "/memory.failcnt"))
      counters.memory_events = number(lines_of(*text).empty() ? "" : lines_of(*text)[0]);
  counters.cpu_pressure_ns = pressure("cpu");
  counters.io_pressure_ns = pressure("io");
  counters.memory_pressure_ns = pressure("memory");
  if (const auto memory = read_file(root_ + "/proc/meminfo"))
    counters.available_bytes = number_behind(*memory, "MemAvailable").value_or(0) * 1024;
  counters.swapped_pages = sum_behind(root_ + "/proc/vmstat", {"pswpin", "pswpout"}).value_or(0);
  if (const auto disks = read_file(root_ + "/proc/diskstats"))
    for (const std::string_view line : lines_of(*disks)) {
      const auto words = words_of(line);  // major minor name reads merged sectors milliseconds ...
      if (words.size() < 7 || !is_whole_device(root_, words[2])) continue;
      counters.disk_reads += number(words[3]).value_or(0);
      counters.disk_bytes += number(words[5]).value_or(0) * kSectorBytes;
      counters.disk_read_ns += number(words[6]).value_or(0) * 1'000'000;
    }
  counters.shared_memory_used = used_share(shared_memory_);
  return counters;
}

}  // namespace feedline::observe
