// SPDX-License-Identifier: Apache-2.0
#include "base/control_groups.h"

#include <unistd.h>

#include <fstream>
#include <optional>
#include <sstream>

// /proc/PID/cgroup lists the process's path in each hierarchy; mountinfo lists the part of a hierarchy that each mount
// shows:
//
//   4:memory:/docker/abc/job                                            the process's path, "0::" in version 2
//   35 31 0:32 /docker/abc /sys/fs/cgroup/memory ... - cgroup none rw,memory
//              the mount's root, in the same notation                  so its folder is /sys/fs/cgroup/memory/job
//
// Both paths are relative to the reader's cgroup namespace: a path that begins with "/.." is outside it. If the
// process's group is not below the mount's root, its folder cannot be determined, and the root is used instead. In a
// container, the root is the container's group.

namespace feedline::base {
namespace {

constexpr std::string_view kUsualLocation = "/sys/fs/cgroup";

struct Mount {
  int version = 2;
  std::string top;          // the group visible at `point`
  std::string point;        // without the root
  std::string controllers;  // ",rw,cpu,cpuacct,"; version 1
};

struct Membership {
  int version = 2;
  std::string controllers;  // ",cpu,cpuacct,"
  std::string path;
};

// Decodes the escapes of mountinfo: a space, tab, newline or backslash is written as three octal digits.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) {
      return i + at < text.size() && text[i + at] >= '0' && text[i + at] < '8';
    };
    if (text[i] == '\\' && digit(1) && digit(2) && digit(3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<Mount> usual_mounts() {
  const std::string location(kUsualLocation);
  std::vector<Mount> mounts{{2, "/", location, ""}, {2, "/", location + "/unified", ""}};
  for (const char* controller : {"cpu", "cpuset", "memory"})
    mounts.push_back({1, "/", location + "/" + controller, "," + std::string(controller) + ","});
  return mounts;
}

std::vector<Mount> read_mounts(const std::string& root) {
  std::ifstream file(root + "/proc/self/mountinfo");
  if (!file) return usual_mounts();
  std::vector<Mount> mounts;
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - cgroup");
    if (dash == std::string::npos) continue;
    std::istringstream front(line.substr(0, dash)), back(line.substr(dash + 3));
    std::string number, parent, device, top, point, type, source, options;
    if (!(front >> number >> parent >> device >> top >> point) || !(back >> type >> source >> options)) continue;
    if (type == "cgroup2")
      mounts.push_back({2, unescaped(top), unescaped(point), ""});
    else if (type == "cgroup")
      mounts.push_back({1, unescaped(top), unescaped(point), "," + options + ","});
  }
  return mounts;
}

std::vector<Membership> read_memberships(const std::string& root, std::int32_t pid) {
  std::ifstream file(root + "/proc/" + (pid == 0 ? "self" : std::to_string(pid)) + "/cgroup");
  std::vector<Membership> memberships;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.starts_with("name=")) continue;  // imposes no limits
    memberships.push_back({controllers.empty() ? 2 : 1, "," + controllers + ",", path});
  }
  // the root group, if the system does not report one
  if (memberships.empty())
    memberships = {{2, ",,", "/"}, {1, ",cpu,", "/"}, {1, ",cpuset,", "/"}, {1, ",memory,", "/"}};
  return memberships;
}

// Returns the part of `path` below `top`, or nullopt if `path` is not below `top`.
std::optional<std::string> below(std::string_view path, std::string_view top) {
  if (path == "/") path = "";
  if (top == "/") top = "";
  if (!path.starts_with(top)) return std::nullopt;
  const std::string_view rest = path.substr(top.size());
  if (!rest.empty() && rest[0] != '/') return std::nullopt;
  if (rest == "/.." || rest.starts_with("/../")) return std::nullopt;
  return std::string(rest);
}

bool is_of(const Mount& mount, const Membership& membership) {
  if (mount.version != membership.version) return false;
  if (mount.version == 2) return true;
  const std::size_t end = membership.controllers.find(',', 1);  // one of them identifies the hierarchy
  return mount.controllers.find(membership.controllers.substr(0, end + 1)) != std::string::npos;
}

// Returns the existing folders of the groups from `rest` up to the mount's top.
std::vector<std::string> folders_of(const std::string& top, std::string rest) {
  std::vector<std::string> folders;
  for (;; rest.resize(rest.rfind('/'))) {
    if (::access((top + rest).c_str(), F_OK) == 0) folders.push_back(top + rest);
    if (rest.empty()) return folders;
  }
}

// Selects the mount that shows the most groups around the process; a later mount hides an earlier one at the same path.
std::vector<std::string> seen_folders(const std::string& root, const std::vector<Mount>& mounts,
                                      const Membership& membership) {
  std::vector<std::string> best;
  bool best_is_below = false;
  for (const Mount& mount : mounts) {
    if (!is_of(mount, membership)) continue;
    const auto rest = below(membership.path, mount.top);
    std::vector<std::string> folders = folders_of(root + mount.point, rest.value_or(""));
    if (best_is_below && !rest) continue;
    if ((rest && !best_is_below) || folders.size() >= best.size()) best = std::move(folders);
    best_is_below = best_is_below || rest.has_value();
  }
  return best;
}

}  // namespace

ControlGroups::ControlGroups(const std::string& root, std::int32_t pid) {
  const std::vector<Mount> mounts = read_mounts(root);
  for (const Membership& membership : read_memberships(root, pid))
    if (auto folders = seen_folders(root, mounts, membership); !folders.empty())
      hierarchies_.push_back({membership.version, membership.controllers, std::move(folders)});
}

std::vector<ControlGroup> ControlGroups::around(std::string_view controller) const {
  const std::string word = "," + std::string(controller) + ",";
  std::vector<ControlGroup> groups;
  for (const Hierarchy& hierarchy : hierarchies_)
    if (hierarchy.version == 2 || hierarchy.controllers.find(word) != std::string::npos)
      for (const std::string& folder : hierarchy.folders) groups.push_back({folder, hierarchy.version});
  return groups;
}

std::string ControlGroups::own_folder(std::string_view controller, int version) const {
  for (const ControlGroup& group : around(controller))
    if (group.version == version) return group.folder;
  return {};
}

int ControlGroups::version() const {
  int found = 0;
  for (const char* controller : {"cpu", "memory"})
    for (const ControlGroup& group : around(controller)) found = found == 1 ? 1 : group.version;
  return found;
}

}  // namespace feedline::base
