// SPDX-License-Identifier: Apache-2.0
#include "observe/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "observe/proc_file.h"

namespace feedline::observe {
namespace {

// The kernel gives no sum of run-queue delay over threads, and a process of hundreds of threads would make each sample
// dear: the threads that load data are among the first.
constexpr int kThreads = 48;

std::set<std::int32_t> numbered_entries(const std::string& folder) {
  std::set<std::int32_t> found;
  DIR* entries = ::opendir(folder.c_str());
  if (!entries) return found;
  while (const dirent* entry = ::readdir(entries))
    if (const auto name = number(entry->d_name)) found.insert(static_cast<std::int32_t>(*name));
  ::closedir(entries);
  return found;
}

// No data set lies there.
bool is_of_the_system(std::string_view path) {
  for (const std::string_view folder : {"/proc/", "/sys/", "/dev/", "/memfd:"})
    if (path.starts_with(folder)) return true;
  return false;
}

// By the flags of open(2), in octal, that /proc/PID/fdinfo tells: the lowest two bits say what for.
bool reads_only(std::string_view about) {
  const auto flags = number_behind(about, "flags");
  return flags && *flags % 10 % 4 == 0;
}

}  // namespace

ProcessTree::ProcessTree(std::string root, std::int32_t pid)
    : proc_(std::move(root) + "/proc/"),
      tick_ns_(1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))),
      page_bytes_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {
  members_[pid];
}

void ProcessTree::find() {
  const auto all = numbered_entries(proc_);
  std::erase_if(strangers_, [&](std::int32_t pid) { return !all.contains(pid); });  // its number may come again
  // a child may have a smaller number than its parent, once numbers wrap: go round until nobody joins
  for (bool joined = true; joined;) {
    joined = false;
    for (const std::int32_t pid : all) {
      if (members_.contains(pid) || strangers_.contains(pid)) continue;
      const auto text = read_file(proc_ + std::to_string(pid) + "/stat");
      const auto stat = text ? process_stat(*text) : std::nullopt;
      if (!stat || !members_.contains(stat->parent)) continue;
      members_[pid].start = stat->start;
      joined = true;
    }
  }
  for (const std::int32_t pid : all)
    if (!members_.contains(pid)) strangers_.insert(pid);
}

bool ProcessTree::update(std::int32_t pid, Member& member, ProcessCounters& counters) {
  const std::string folder = proc_ + std::to_string(pid) + "/";
  const auto text = read_file(folder + "stat");
  const auto stat = text ? process_stat(*text) : std::nullopt;
  if (!stat || stat->ended || (member.start != 0 && member.start != stat->start)) return false;
  member.start = stat->start;
  counters.pid = pid;
  counters.parent = stat->parent;
  counters.cpu_ns = stat->ticks * tick_ns_;
  counters.system_ns = stat->system_ticks * tick_ns_;
  counters.minor_faults = stat->minor_faults;
  counters.major_faults = stat->major_faults;
  counters.resident_bytes = stat->resident_pages * page_bytes_;
  counters.threads = stat->threads;
  int looked_at = 0;
  for (const std::int32_t thread : numbered_entries(folder + "task")) {
    if (++looked_at > kThreads) break;
    const auto schedule = read_file(folder + "task/" + std::to_string(thread) + "/schedstat");
    const auto words = schedule ? words_of(*schedule) : std::vector<std::string_view>();
    if (words.size() >= 2) member.thread_delay_ns[thread] = number(words[1]).value_or(0);
  }
  for (const auto& [thread, delay_ns] : member.thread_delay_ns) counters.delay_ns += delay_ns;
  if (const auto io = read_file(folder + "io")) {
    counters.read_bytes = number_behind(*io, "rchar").value_or(0);
    counters.read_calls = number_behind(*io, "syscr").value_or(0);
    counters.device_bytes = number_behind(*io, "read_bytes").value_or(0);
  } else if (errno == EACCES || errno == EPERM) {
    unreadable_.insert(pid);
  }
  return true;
}

std::vector<ProcessCounters> ProcessTree::sample(std::uint64_t now_ns) {
  find();
  std::vector<ProcessCounters> counters;
  for (auto member = members_.begin(); member != members_.end();) {
    ProcessCounters one;
    one.time_ns = now_ns;
    if (update(member->first, member->second, one)) {
      counters.push_back(one);
      ++member;
    } else {
      member = members_.erase(member);
    }
  }
  return counters;
}

TreeMemory ProcessTree::memory(std::uint64_t now_ns) const {
  TreeMemory memory;
  memory.time_ns = now_ns;
  for (const auto& [pid, member] : members_) {
    const std::string folder = proc_ + std::to_string(pid) + "/";
    const auto rollup = read_file(folder + "smaps_rollup");
    if (const auto kib = rollup ? number_behind(*rollup, "Pss") : std::nullopt) {
      memory.bytes += *kib * 1024;
      continue;
    }
    const auto pages = read_file(folder + "statm");  // size resident shared ..., which anybody may read
    const auto words = pages ? words_of(*pages) : std::vector<std::string_view>();
    if (words.size() < 3) continue;  // it has ended
    const std::uint64_t resident = number(words[1]).value_or(0), shared = number(words[2]).value_or(0);
    memory.bytes += (resident - std::min(shared, resident)) * page_bytes_;
    memory.exact = false;
  }
  return memory;
}

void ProcessTree::add_open_files(std::set<std::string>& files, std::size_t most) const {
  for (const auto& [pid, member] : members_) {
    const std::string folder = proc_ + std::to_string(pid) + "/";
    for (const std::int32_t file : numbered_entries(folder + "fd")) {
      if (files.size() >= most) return;
      const std::string name = std::to_string(file);
      std::array<char, 4096> target{};
      const ssize_t length = ::readlink((folder + "fd/" + name).c_str(), target.data(), target.size());
      if (length <= 0 || target[0] != '/' || length == static_cast<ssize_t>(target.size())) continue;
      const std::string_view path(target.data(), static_cast<std::size_t>(length));
      if (is_of_the_system(path) || path.ends_with(" (deleted)")) continue;
      const auto about = read_file(folder + "fdinfo/" + name);
      if (about && reads_only(*about)) files.emplace(path);
    }
  }
}

}  // namespace feedline::observe
