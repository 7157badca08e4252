// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "feedline/observe.h"
#include "observe/proc_file.h"

namespace feedline::observe {

// Tracks a process and all its descendants. A process stays in the tree even if its parent exits first. One thread.
class ProcessTree {
 public:
  // root: contains /proc.
  ProcessTree(std::string root, std::int32_t pid);

  // Returns the counters of all live processes, ordered by process ID.
  std::vector<ProcessCounters> sample(std::uint64_t now_ns);

  // Searches for new descendants; sample() also does this. The call is cheap if no process was created since the last
  // call.
  void find();

  // Returns the memory of the processes in the last sample. To compute the proportional share of a process, the kernel
  // traverses all its pages, which takes milliseconds. Processes that were measured longest ago are therefore measured
  // first, within `budget_ns` of this thread's CPU time; for all other processes, the last measured ratio is assumed.
  // Returns nullopt until processes with half of the memory have been measured.
  std::optional<TreeMemory> memory(std::uint64_t now_ns, std::uint64_t budget_ns);

  // Returns the resident memory of the processes in the last sample; shared memory counts in each of them.
  std::uint64_t resident_bytes() const;

  // Adds the regular files that the processes have open for reading, until `files` has `most` entries.
  void add_open_files(std::set<std::string>& files, std::size_t most);

  // Processes whose I/O counters this user may not read.
  const std::set<std::int32_t>& unreadable() const { return unreadable_; }

 private:
  struct Thread {
    OpenProcFile schedule;
    std::uint64_t delay_ns = 0;
  };
  struct OpenFile {
    std::string path;
    bool wanted = false;  // for reading, and not a system file
  };
  struct Member {
    explicit Member(const std::string& folder) : stat(folder + "stat"), io(folder + "io") {}

    OpenProcFile stat, io;
    std::uint64_t start = 0;
    std::map<std::int32_t, Thread> threads;
    std::uint64_t listed_threads = 0;  // number of threads when they were listed
    std::uint64_t ended_delay_ns = 0;  // of threads that have ended
    std::uint64_t resident_bytes = 0;
    std::optional<double> shared_part;  // proportional share: a page shared by n processes counts 1/n
    std::uint64_t looked_ns = 0;        // time of the last measurement; 0 if never
    std::uint64_t look_cost_ns = 0;
    std::map<std::int32_t, OpenFile> open;
  };

  std::string folder_of(std::int32_t pid) const { return proc_ + std::to_string(pid) + "/"; }
  Member& join(std::int32_t pid);
  bool has_news();
  void pass_over_elders(const std::vector<std::int32_t>& all);
  bool update(std::int32_t pid, Member& member, ProcessCounters& counters);
  void add_delays(std::int32_t pid, Member& member, ProcessCounters& counters);
  void list_threads(std::int32_t pid, Member& member);
  void look_at_pages(std::uint64_t now_ns, std::uint64_t budget_ns);
  std::uint64_t expected_ns(const Member& member) const;

  std::string proc_;
  std::int32_t first_;   // the process itself
  OpenProcFile latest_;  // contains the number of the last created process or thread
  std::string latest_pid_;
  std::string buffer_;
  std::map<std::int32_t, Member> members_;
  std::vector<std::int32_t> strangers_;  // not in this tree: checked once; sorted
  std::set<std::int32_t> unreadable_;
  std::uint64_t tick_ns_;
  std::uint64_t page_bytes_;
};

}  // namespace feedline::observe
