// SPDX-License-Identifier: Apache-2.0
#include "observe/process_tree.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/cpu_clock.h"
#include "observe/proc_file.h"

namespace feedline::observe {
namespace {

// The maximum number of threads to read per process. The kernel does not sum run-queue delays over threads, and
// processes with hundreds of threads would make samples expensive. Threads that load data are among the first.
constexpr std::size_t kThreads = 48;

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kYoungS = 10;  // numbers do not wrap within this time

// Initial estimate of the time that the kernel needs to traverse a page of a process; 50 to 130 ns were measured on
// virtual machines.
constexpr std::uint64_t kLookNsPerPage = 50;

// Returns whether the path is in a system folder, where no dataset is stored.
bool is_of_the_system(std::string_view path) {
  for (const std::string_view folder : {"/proc/", "/sys/", "/dev/", "/memfd:"})
    if (path.starts_with(folder)) return true;
  return false;
}

// Returns whether a file is open only for reading: in the octal open(2) flags in /proc/PID/fdinfo, the lowest two bits
// are the access mode.
bool reads_only(std::string_view about) {
  const auto flags = number_behind(about, "flags");
  return flags && *flags % 10 % 4 == 0;
}

}  // namespace

ProcessTree::ProcessTree(std::string root, std::int32_t pid)
    : proc_(std::move(root) + "/proc/"),
      first_(pid),
      latest_(proc_ + "loadavg"),
      tick_ns_(1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))),
      page_bytes_(static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) {
  join(pid);
}

ProcessTree::Member& ProcessTree::join(std::int32_t pid) {
  return members_.try_emplace(pid, folder_of(pid)).first->second;
}

// Checks whether processes were created, because traversing /proc is the most expensive part of a sample on an idle
// machine.
bool ProcessTree::has_news() {
  const auto text = latest_.read(buffer_);
  const auto words = text ? words_of(*text) : std::vector<std::string_view>();
  if (words.empty()) return true;
  if (words.back() == latest_pid_) return false;
  latest_pid_ = words.back();
  return true;
}

// Process IDs are assigned in ascending order and wrap around. Until the IDs have wrapped around since the root process
// was created, processes with smaller IDs cannot be its descendants. Reading these processes' files would be the most
// expensive part of a short run.
void ProcessTree::pass_over_elders(const std::vector<std::int32_t>& all) {
  const auto latest = number(latest_pid_);
  const auto stat_text = read_file(folder_of(first_) + "stat");
  const auto stat = stat_text ? process_stat(*stat_text) : std::nullopt;
  const auto uptime = read_file(proc_ + "uptime");
  const auto seconds = uptime ? number(uptime->substr(0, uptime->find('.'))) : std::nullopt;
  const auto first = static_cast<std::uint64_t>(first_);
  if (!latest || *latest < first || !stat || !seconds || *seconds > stat->start * tick_ns_ / kSecondNs + kYoungS)
    return;
  std::ranges::copy_if(all, std::back_inserter(strangers_), [&](std::int32_t pid) { return pid < first_; });
}

void ProcessTree::find() {
  const bool is_first = latest_pid_.empty();
  if (!has_news()) return;  // processes created from here on are found next time
  const auto all = numbered_entries(proc_);
  if (is_first) pass_over_elders(all);
  const auto is_there = [&](std::int32_t pid) { return std::ranges::binary_search(all, pid); };
  std::erase_if(members_, [&](const auto& member) { return !is_there(member.first); });
  std::vector<std::int32_t> unknown;
  for (const std::int32_t pid : all)  // a number of an unrelated process may be reused once it has ended
    if (!members_.contains(pid) && !std::ranges::binary_search(strangers_, pid)) unknown.push_back(pid);
  std::erase_if(strangers_, [&](std::int32_t pid) { return !is_there(pid); });
  // a child may have a smaller number than its parent, once numbers wrap: repeat until no process joins
  const auto joins = [&](std::int32_t pid) {
    const auto text = read_file(folder_of(pid) + "stat");
    const auto stat = text ? process_stat(*text) : std::nullopt;
    if (!stat || !members_.contains(stat->parent)) return false;
    join(pid).start = stat->start;
    return true;
  };
  while (std::erase_if(unknown, joins) > 0) {
  }
  strangers_.insert(strangers_.end(), unknown.begin(), unknown.end());
  std::ranges::sort(strangers_);
}

void ProcessTree::list_threads(std::int32_t pid, Member& member) {
  const std::string folder = folder_of(pid) + "task/";
  const auto all = numbered_entries(folder);
  std::erase_if(member.threads, [&](const auto& thread) {
    if (std::ranges::binary_search(all, thread.first)) return false;
    member.ended_delay_ns += thread.second.delay_ns;
    return true;
  });
  for (const std::int32_t thread : all) {
    if (member.threads.size() >= kThreads) return;
    if (!member.threads.contains(thread))
      member.threads.emplace(thread, Thread{OpenProcFile(folder + std::to_string(thread) + "/schedstat")});
  }
}

void ProcessTree::add_delays(std::int32_t pid, Member& member, ProcessCounters& counters) {
  if (counters.threads != member.listed_threads) list_threads(pid, member);
  member.listed_threads = counters.threads;
  for (auto& [number_of_thread, thread] : member.threads) {
    const auto text = thread.schedule.read(buffer_);
    const auto words = text ? words_of(*text) : std::vector<std::string_view>();
    if (words.size() >= 2)
      thread.delay_ns = number(words[1]).value_or(0);
    else
      member.listed_threads = 0;  // it has ended: another may have its number
    counters.delay_ns += thread.delay_ns;
  }
  counters.delay_ns += member.ended_delay_ns;
}

bool ProcessTree::update(std::int32_t pid, Member& member, ProcessCounters& counters) {
  const auto text = member.stat.read(buffer_);
  const auto stat = text ? process_stat(*text) : std::nullopt;
  if (!stat || stat->ended || (member.start != 0 && member.start != stat->start)) return false;
  member.start = stat->start;
  counters.pid = pid;
  counters.parent = stat->parent;
  counters.cpu_ns = stat->ticks * tick_ns_;
  counters.system_ns = stat->system_ticks * tick_ns_;
  counters.minor_faults = stat->minor_faults;
  counters.major_faults = stat->major_faults;
  counters.resident_bytes = member.resident_bytes = stat->resident_pages * page_bytes_;
  counters.threads = stat->threads;
  add_delays(pid, member, counters);
  if (const auto io = member.io.read(buffer_)) {
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

std::uint64_t ProcessTree::resident_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [pid, member] : members_) bytes += member.resident_bytes;
  return bytes;
}

std::uint64_t ProcessTree::expected_ns(const Member& member) const {
  return member.looked_ns > 0 ? member.look_cost_ns : member.resident_bytes / page_bytes_ * kLookNsPerPage;
}

void ProcessTree::look_at_pages(std::uint64_t now_ns, std::uint64_t budget_ns) {
  std::vector<std::pair<std::uint64_t, std::int32_t>> by_age;
  for (const auto& [pid, member] : members_) by_age.emplace_back(member.looked_ns, pid);
  std::ranges::sort(by_age);
  for (const auto& [looked, pid] : by_age) {
    Member& member = members_.at(pid);
    if (expected_ns(member) > budget_ns) return;
    const std::uint64_t before = base::thread_cpu_ns();
    const auto rollup = read_file(folder_of(pid) + "smaps_rollup");
    const auto kib = rollup ? number_behind(*rollup, "Pss") : std::nullopt;
    member.shared_part.reset();
    if (kib && member.resident_bytes > 0)
      member.shared_part = static_cast<double>(*kib * 1024) / static_cast<double>(member.resident_bytes);
    member.looked_ns = now_ns;
    member.look_cost_ns = base::thread_cpu_ns() - before;
    budget_ns -= std::min(budget_ns, member.look_cost_ns);
  }
}

std::optional<TreeMemory> ProcessTree::memory(std::uint64_t now_ns, std::uint64_t budget_ns) {
  look_at_pages(now_ns, budget_ns);
  std::uint64_t looked_at = 0;
  for (const auto& [pid, member] : members_) looked_at += member.looked_ns > 0 ? member.resident_bytes : 0;
  if (looked_at == 0 || looked_at < resident_bytes() / 2) return std::nullopt;
  TreeMemory memory;
  memory.time_ns = now_ns;
  for (const auto& [pid, member] : members_) {
    if (member.shared_part) {
      memory.bytes += static_cast<std::uint64_t>(*member.shared_part * static_cast<double>(member.resident_bytes));
      continue;
    }
    const auto pages = read_file(folder_of(pid) + "statm");  // size resident shared ..., readable by all users
    const auto words = pages ? words_of(*pages) : std::vector<std::string_view>();
    if (words.size() < 3) continue;  // it has ended
    const std::uint64_t resident = number(words[1]).value_or(0), shared = number(words[2]).value_or(0);
    memory.bytes += (resident - std::min(shared, resident)) * page_bytes_;
    memory.exact = false;
  }
  return memory;
}

void ProcessTree::add_open_files(std::set<std::string>& files, std::size_t most) {
  for (auto& [pid, member] : members_) {
    const std::string folder = folder_of(pid);
    std::map<std::int32_t, OpenFile> before = std::exchange(member.open, {});
    for (const std::int32_t file : numbered_entries(folder + "fd")) {
      if (files.size() >= most) return;
      const std::string name = std::to_string(file);
      std::array<char, 4096> target{};
      const ssize_t length = ::readlink((folder + "fd/" + name).c_str(), target.data(), target.size());
      if (length <= 0 || target[0] != '/' || length == static_cast<ssize_t>(target.size())) continue;
      const std::string_view path(target.data(), static_cast<std::size_t>(length));
      OpenFile& open = member.open[file];
      open = std::move(before[file]);
      if (open.path != path) {  // its open mode does not change
        open.path = path;
        const bool data = !is_of_the_system(path) && !path.ends_with(" (deleted)");
        const auto about = data ? read_file(folder + "fdinfo/" + name) : std::nullopt;
        open.wanted = about && reads_only(*about);
      }
      if (open.wanted) files.insert(open.path);
    }
  }
}

}  // namespace feedline::observe
