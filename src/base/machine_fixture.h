// SPDX-License-Identifier: Apache-2.0
#pragma once

// A simulated machine for tests: /proc and /sys in a temporary folder.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace feedline::base {

class MadeMachine : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("feedline_made_machine_" + std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const auto file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // Mounts the cgroup hierarchy at `point` with the given options: "rw,cpu,cpuacct".
  void mount(const std::string& top, const std::string& point, const std::string& type, const std::string& options) {
    mounts_ += "30 20 0:26 " + top + " " + point + " rw,nosuid shared:9 - " + type + " cgroup " + options + "\n";
    write("proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + mounts_);
  }

  std::string root_;

 private:
  std::string mounts_;
};

}  // namespace feedline::base
