// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: a folder that stands for the root of a machine, with the files of /proc and /sys that a test writes.

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

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

  // A process of one thread: `ticks` of CPU (100 a second), `delay_ns` of waiting for one.
  void process(int pid, int parent, int ticks, std::uint64_t delay_ns, std::string_view name = "python") const {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    write(folder + "stat", std::to_string(pid) + " (" + std::string(name) + ") S " + std::to_string(parent) +
                               " 1 1 0 -1 0 5 0 6 0 " + std::to_string(ticks) + " 0 0 0 20 0 1 0 77 1000 3 0");
    write(folder + "task/" + std::to_string(pid) + "/schedstat", "1 " + std::to_string(delay_ns) + " 1\n");
    write(folder + "io", "rchar: 100\nwchar: 0\nsyscr: 4\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 0\n");
  }

 private:
  std::string path_;
};

}  // namespace feedline::observe
