// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace feedline::base {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys/fs/cgroup.
class Cgroup : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("feedline_cpus_test_" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  fs::path root_;
};

TEST_F(Cgroup, TakesTheTightestLimitUpTheTree) {
  write("proc/self/cgroup", "0::/jobs/train\n");
  write("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/jobs/train/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/jobs/memory.max", "1000\n");
  write("sys/fs/cgroup/jobs/train/memory.max", "700\n");
  EXPECT_EQ(cgroup_limit("cpu.max", root_), 1.5);
  EXPECT_EQ(cgroup_limit("memory.max", root_), 700);
}

TEST_F(Cgroup, HasNoLimitWithoutFiles) { EXPECT_EQ(cgroup_limit("cpu.max", root_), std::nullopt); }

TEST_F(Cgroup, ReadsVersionOne) {
  write("proc/self/cgroup", "4:cpu:/docker/x\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(cgroup_limit("cpu.max", root_), 2);
  EXPECT_EQ(cgroup_limit("memory.max", root_), std::nullopt);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(cgroup_limit("cpu.max", root_), std::nullopt);
}

TEST_F(Cgroup, AddsUpWhatQuotasUpTheTreeHaveThrottled) {
  EXPECT_EQ(throttled_ns(root_), std::nullopt);
  write("proc/self/cgroup", "0::/jobs/train\n");
  write("sys/fs/cgroup/jobs/cpu.stat", "usage_usec 900\nnr_throttled 3\nthrottled_usec 70\n");
  write("sys/fs/cgroup/jobs/train/cpu.stat", "usage_usec 900\nthrottled_usec 5\nnr_bursts 0\n");
  EXPECT_EQ(throttled_ns(root_), 75'000u);
  fs::remove_all(root_);
  write("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_time 12345\n");
  EXPECT_EQ(throttled_ns(root_), 12'345u);
}

TEST(UsableCpus, ObeysTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&before));
  EXPECT_GT(usable_memory_bytes(), 0u);
}

}  // namespace
}  // namespace feedline::base
