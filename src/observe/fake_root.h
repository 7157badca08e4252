// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: a folder that acts as the root of a machine, with files in /proc and /sys written by a test.

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace feedline::observe {

class FakeRoot {
 public:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "feedline-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) ? pattern : std::string();
  }
  ~FakeRoot() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }
  std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }

  void write(std::string_view name, std::string_view content) const {
    const std::string file = path(name);
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }
  void remove(std::string_view name) const { std::filesystem::remove_all(path(name)); }

  // Adds a process with `ticks` of CPU time (100 per second), whose first thread has waited `delay_ns` for a CPU.
  void process(int pid, int parent, int ticks, std::uint64_t delay_ns, std::string_view name = "python",
               int threads = 1, int resident_pages = 3) const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    write(folder + "stat", std::to_string(pid) + " (" + std::string(name) + ") S " + std::to_string(parent) +
                               " 1 1 0 -1 0 5 0 6 0 " + std::to_string(ticks) + " 0 0 0 20 0 " +
                               std::to_string(threads) + " 0 77 1000 " + std::to_string(resident_pages) + " 0");
    write(folder + "task/" + std::to_string(pid) + "/schedstat", "1 " + std::to_string(delay_ns) + " 1\n");
    write(folder + "io", "rchar: 100\nwchar: 0\nsyscr: 4\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 0\n");
  }

 private:
  std::string path_;
};

// Counts files below a root that any process opens while this object exists.
class Opens {
 public:
  explicit Opens(const FakeRoot& root) : watch_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    ::inotify_add_watch(watch_, root.path().c_str(), IN_OPEN);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root.path()))
      if (entry.is_directory() && !entry.is_symlink()) ::inotify_add_watch(watch_, entry.path().c_str(), IN_OPEN);
    count();  // traversing the folders opened them
    opened_.clear();
  }
  ~Opens() { ::close(watch_); }
  Opens(const Opens&) = delete;
  Opens& operator=(const Opens&) = delete;

  // Counts files with this name, or all files if it is empty. Folders count as files.
  std::uint64_t count(std::string_view name = "") {
    alignas(inotify_event) std::array<char, 16384> events;
    ssize_t got = 0;
    while ((got = ::read(watch_, events.data(), events.size())) > 0)
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
        opened_.emplace_back(event->len > 0 ? event->name : "");
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(opened_, [&](const std::string& one) { return name.empty() || one == name; }));
  }

 private:
  int watch_;
  std::vector<std::string> opened_;
};

}  // namespace feedline::observe
