// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a process stands in the machine's control groups, and in which folders their files lie: version 1, version 2
// or both. Nothing else knows where those folders are. Plain data once made; it does not follow a process that is
// moved to another group.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::base {

struct ControlGroup {
  std::string folder;  // with the root in front
  int version = 2;
};

class ControlGroups {
 public:
  // pid 0: this process. `root` is a seam for tests: where /proc and /sys are.
  explicit ControlGroups(const std::string& root = "", std::int32_t pid = 0);

  // The process's own group and those around it, innermost first, in the hierarchies that may hold `controller`, such
  // as "memory": version 1's where it is mounted, and version 2's. Only groups that can be seen from here are told.
  std::vector<ControlGroup> around(std::string_view controller) const;

  // The innermost of those of one version; empty: none.
  std::string own_folder(std::string_view controller, int version) const;

  // Which version limits CPUs and memory here. 0: no group can be seen.
  int version() const;

 private:
  struct Hierarchy {
    int version = 2;
    std::string controllers;  // of version 1, with a comma before, between and behind
    std::vector<std::string> folders;
  };
  std::vector<Hierarchy> hierarchies_;
};

}  // namespace feedline::base
