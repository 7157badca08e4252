// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a process's control groups (version 1, version 2 or both) and their folders. All other code uses this class to
// find cgroup folders. The object reads the files once, when it is constructed, and does not follow a process that
// moves to another group.

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
  // pid 0: this process. `root` replaces the location of /proc and /sys in tests.
  explicit ControlGroups(const std::string& root = "", std::int32_t pid = 0);

  // Returns the process's group and its ancestors, innermost first, in the hierarchies that may have `controller`, such
  // as "memory": version 1 if it is mounted, and version 2. Groups outside the visible hierarchy are omitted.
  std::vector<ControlGroup> around(std::string_view controller) const;

  // Returns the innermost group of one cgroup version, or an empty string if there is none.
  std::string own_folder(std::string_view controller, int version) const;

  // Returns the cgroup version that limits CPUs and memory of the process; 0 if no group is visible.
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
