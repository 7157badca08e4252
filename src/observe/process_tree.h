// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "feedline/observe.h"

namespace feedline::observe {

// A process and all that come from it. One that was found stays, also when its parent ends before it. One thread.
class ProcessTree {
 public:
  // root: where /proc is.
  ProcessTree(std::string root, std::int32_t pid);

  // The counters of all that are alive now, in order of their numbers.
  std::vector<ProcessCounters> sample(std::uint64_t now_ns);

  // What those that the last sample found take of memory now. Goes through all their pages.
  TreeMemory memory(std::uint64_t now_ns) const;

  // Adds the regular files that they have open for reading now, until `files` holds `most`.
  void add_open_files(std::set<std::string>& files, std::size_t most) const;

  // Processes whose counters of input this user may not read.
  const std::set<std::int32_t>& unreadable() const { return unreadable_; }

 private:
  struct Member {
    std::uint64_t start = 0;
    std::map<std::int32_t, std::uint64_t> thread_delay_ns;  // of threads that have ended too
  };

  void find();
  bool update(std::int32_t pid, Member& member, ProcessCounters& counters);

  std::string proc_;
  std::map<std::int32_t, Member> members_;
  std::set<std::int32_t> strangers_;  // not of this tree: looked at once
  std::set<std::int32_t> unreadable_;
  std::uint64_t tick_ns_;
  std::uint64_t page_bytes_;
};

}  // namespace feedline::observe
