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

// A process and all that come from it. One that was found stays, also when its parent ends before it. One thread.
class ProcessTree {
 public:
  // root: where /proc is.
  ProcessTree(std::string root, std::int32_t pid);

  // The counters of all that are alive now, in order of their numbers.
  std::vector<ProcessCounters> sample(std::uint64_t now_ns);

  // Looks for those that have joined; sample() does so itself. Costs little where nobody was made since the last time.
  void find();

  // What those that the last sample found take of memory. The kernel goes through all pages of a process for its share,
  // for milliseconds: those that were looked at longest ago are, for as long as `budget_ns` of this thread's CPU, and
  // the others are taken to share as much of what they hold as when they were looked at last. nullopt: no budget was
  // enough yet for those that hold half of it.
  std::optional<TreeMemory> memory(std::uint64_t now_ns, std::uint64_t budget_ns);

  // What those that the last sample found hold; what some share counts in each of them.
  std::uint64_t resident_bytes() const;

  // Adds the regular files that they have open for reading now, until `files` holds `most`.
  void add_open_files(std::set<std::string>& files, std::size_t most);

  // Processes whose counters of input this user may not read.
  const std::set<std::int32_t>& unreadable() const { return unreadable_; }

 private:
  struct Thread {
    KeptFile schedule;
    std::uint64_t delay_ns = 0;
  };
  struct OpenFile {
    std::string path;
    bool wanted = false;  // for reading, and not of the system
  };
  struct Member {
    explicit Member(const std::string& folder) : stat(folder + "stat"), io(folder + "io") {}

    KeptFile stat, io;
    std::uint64_t start = 0;
    std::map<std::int32_t, Thread> threads;
    std::uint64_t listed_threads = 0;  // how many it had when they were listed
    std::uint64_t ended_delay_ns = 0;  // of threads that have ended
    std::uint64_t resident_bytes = 0;
    std::optional<double> shared_part;  // of those, were a page that n processes share 1/n of one
    std::uint64_t looked_ns = 0;        // when that was asked for; 0: never
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
  std::int32_t first_;  // the process itself
  KeptFile latest_;     // tells the number of the process, or thread, that was made last
  std::string latest_pid_;
  std::string buffer_;
  std::map<std::int32_t, Member> members_;
  std::vector<std::int32_t> strangers_;  // not of this tree: looked at once; in order
  std::set<std::int32_t> unreadable_;
  std::uint64_t tick_ns_;
  std::uint64_t page_bytes_;
};

}  // namespace feedline::observe
