// SPDX-License-Identifier: Apache-2.0
#pragma once

// Locates a process's control groups and the folders with their files: version 1, version 2 or both. All other code
// gets those folders from here. Plain data once constructed; does not follow a process that moves to another group.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::base {

struct ControlGroup {
  std::string folder;  // including the root
  int version = 2;
};

class ControlGroups {
 public:
  // pid 0: this process. `root` is the location of /proc and /sys, replaceable in tests.
  explicit ControlGroups(const std::string& root = "", std::int32_t pid = 0);

  // The process's own group and its ancestors, innermost first, in the hierarchies that may have `controller`, such as
  // "memory": version 1's if it is mounted, and version 2's. Only groups that are visible from here.
  std::vector<ControlGroup> around(std::string_view controller) const;

  // The innermost group of one version; empty if there is none.
  std::string own_folder(std::string_view controller, int version) const;

  // The version that limits CPUs and memory here. 0: no group is visible.
  int version() const;

 private:
  struct Hierarchy {
    int version = 2;
    std::string controllers;  // of version 1, surrounded and separated by commas
    std::vector<std::string> folders;
  };
  std::vector<Hierarchy> hierarchies_;
};

}  // namespace feedline::base
