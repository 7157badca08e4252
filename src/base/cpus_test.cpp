// SPDX-License-Identifier: Apache-2.0
#include "base/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>

#include "base/machine_fixture.h"

namespace feedline::base {
namespace {

namespace fs = std::filesystem;

class Cgroup : public MadeMachine {};

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

constexpr char kTop[] = "sys/fs/cgroup";

class Limits : public MadeMachine {
 protected:
  void version_two(const std::string& path) {
    write("proc/self/cgroup", "0::" + path + "\n");
    mount("/", "/sys/fs/cgroup", "cgroup2", "rw");
  }
  void group(const std::string& path, const std::string& file, const std::string& text) {
    write(std::string(kTop) + path + "/" + file, text + "\n");
  }
  void allow(const std::string& cpus) { write("proc/self/status", "Name:\tx\nCpus_allowed_list:\t" + cpus + "\n"); }
};

TEST_F(Limits, CountAQuotaThatOnlyAParentHas) {
  version_two("/box/job");
  allow("0-15");
  group("/box", "cpu.max", "200000 100000");
  group("/box", "memory.max", "4294967296");
  group("/box/job", "cpu.max", "max 100000");
  group("/box/job", "memory.max", "max");
  const CpuLimits cpus = cpu_limits(root_);
  EXPECT_EQ(cpus.allowed.size(), 16u);
  EXPECT_EQ(cpus.quota, 2.0);
  EXPECT_EQ(cpus.threads(), 2);
  EXPECT_EQ(memory_limits(root_).limit_bytes, std::uint64_t{4} << 30);
}

TEST_F(Limits, CountTheQuotaOfVersionOne) {
  write("proc/self/cgroup", "4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n");
  mount("/docker/x", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct");
  mount("/docker/x", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  allow("0-15");
  group("/cpu,cpuacct", "cpu.cfs_quota_us", "200000");
  group("/cpu,cpuacct", "cpu.cfs_period_us", "100000");
  group("/memory", "memory.limit_in_bytes", "1000000");
  group("/memory", "memory.usage_in_bytes", "900000");
  group("/memory", "memory.stat", "inactive_file 1\ntotal_inactive_file 500000");
  group("/memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3");
  EXPECT_EQ(cpu_limits(root_).threads(), 2);
  const MemoryLimits memory = memory_limits(root_);
  EXPECT_EQ(memory.limit_bytes, 1'000'000u);
  EXPECT_EQ(memory.binding_used_bytes, 400'000u) << "the page cache of groups below gives way as well";
  EXPECT_EQ(memory.left_bytes(), 600'000u);
  EXPECT_EQ(memory.oom_kills, 3u);
}

TEST_F(Limits, RoundHalfACpuUpForThreadsAndKeepItForShares) {
  version_two("/");
  allow("0-7");
  group("", "cpu.max", "250000 100000");
  EXPECT_EQ(cpu_limits(root_).threads(), 3);
  EXPECT_EQ(cpu_limits(root_).capacity(), 2.5);
  group("", "cpu.max", "20000 100000");
  EXPECT_EQ(cpu_limits(root_).threads(), 1);
  allow("3");
  group("", "cpu.max", "250000 100000");
  EXPECT_EQ(cpu_limits(root_).threads(), 1);
}

TEST_F(Limits, StayWithinTheCpuset) {
  version_two("/box/job");
  allow("0-15");
  group("", "cpuset.cpus.effective", "0-63");
  group("/box", "cpuset.cpus.effective", "2-3,8");
  EXPECT_EQ(cpu_limits(root_).allowed, (std::vector<int>{2, 3, 8}));
  EXPECT_EQ(cpu_limits(root_).around, 64);
  write("proc/self/cgroup", "5:cpuset:/box\n");
  mount("/", "/sets", "cgroup", "rw,cpuset");
  write("sets/box/cpuset.cpus", "4-6\n");
  write("sets/cpuset.cpus", "0-31\n");
  EXPECT_EQ(cpu_limits(root_).allowed, (std::vector<int>{4, 5, 6}));
  EXPECT_EQ(cpu_limits(root_).around, 32);
  write("sets/box/cpuset.cpus", "40-41\n");  // of no use to anybody: the mask is what the kernel goes by
  EXPECT_EQ(cpu_limits(root_).allowed.size(), 16u);
}

TEST_F(Limits, BindWhereTheLeastMemoryIsLeft) {
  version_two("/box/job");
  write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
  group("/box", "memory.max", "8000");
  group("/box", "memory.current", "7600");  // mostly by its neighbours
  group("/box", "memory.stat", "anon 1\ninactive_file 100");
  group("/box/job", "memory.max", "6000");
  group("/box/job", "memory.current", "900");
  group("/box/job", "memory.swap.max", "50");
  group("/box/job", "memory.events", "oom 4\noom_kill 2\noom_group_kill 0");
  const MemoryLimits memory = memory_limits(root_);
  EXPECT_EQ(memory.limit_bytes, 6000u);
  EXPECT_EQ(memory.binding_bytes, 8000u);
  EXPECT_EQ(memory.binding_used_bytes, 7500u);
  EXPECT_EQ(memory.left_bytes(), 500u);
  EXPECT_EQ(memory.usable_bytes(), 6000u);
  EXPECT_EQ(memory.swap_limit_bytes, 50u);
  EXPECT_EQ(memory.oom_kills, 2u);
  group("/box/job", "memory.high", "300");  // above it the kernel throttles the group to reclaim memory
  EXPECT_EQ(memory_limits(root_).limit_bytes, 300u);
  EXPECT_EQ(memory_limits(root_).left_bytes(), 500u) << "nothing is refused for it";
}

TEST_F(Limits, KnowVersionOnesLimitsAboveTheMount) {
  write("proc/self/cgroup", "4:memory:/pod/box\n");
  mount("/pod/box", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  group("/memory", "memory.limit_in_bytes", "9223372036854771712");
  group("/memory", "memory.usage_in_bytes", "100");
  group("/memory", "memory.stat", "cache 0\nhierarchical_memory_limit 5000\ntotal_inactive_file 30");
  EXPECT_EQ(memory_limits(root_).limit_bytes, 5000u);
  EXPECT_EQ(memory_limits(root_).binding_used_bytes, 70u);
  group("/memory", "memory.stat", "hierarchical_memory_limit 9223372036854771712");
  EXPECT_EQ(memory_limits(root_).limit_bytes, std::nullopt);
}

TEST_F(Limits, LeaveOutParentsThatDoNotCountTheirChildren) {
  write("proc/self/cgroup", "4:memory:/alone\n");
  mount("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  group("/memory", "memory.limit_in_bytes", "100");
  group("/memory", "memory.use_hierarchy", "0");
  group("/memory/alone", "memory.limit_in_bytes", "700");
  group("/memory/alone", "memory.memsw.limit_in_bytes", "900");
  EXPECT_EQ(memory_limits(root_).limit_bytes, 700u);
  EXPECT_EQ(memory_limits(root_).swap_limit_bytes, 200u);
  group("/memory", "memory.use_hierarchy", "1");
  EXPECT_EQ(memory_limits(root_).limit_bytes, 100u);
}

TEST_F(Limits, AreTheTightestOfBothVersionsInAHybrid) {
  write("proc/self/cgroup", "4:memory:/job\n2:cpu:/job\n0::/job\n");
  mount("/", "/sys/fs/cgroup/unified", "cgroup2", "rw");
  mount("/", "/sys/fs/cgroup/cpu", "cgroup", "rw,cpu");
  mount("/", "/sys/fs/cgroup/memory", "cgroup", "rw,memory");
  allow("0-15");
  write("sys/fs/cgroup/unified/job/cgroup.procs", "");
  group("/cpu/job", "cpu.cfs_quota_us", "350000");
  group("/cpu/job", "cpu.cfs_period_us", "100000");
  group("/memory", "memory.limit_in_bytes", "900");
  group("/memory/job", "memory.limit_in_bytes", "1000");
  EXPECT_EQ(cpu_limits(root_).threads(), 4);
  EXPECT_EQ(memory_limits(root_).limit_bytes, 900u);
  EXPECT_EQ(cgroup_version(root_), 1);
}

TEST_F(Limits, AreThoseOfAContainerInItsOwnNamespace) {
  write("proc/self/cgroup", "0::/\n");
  mount("/", "/sys/fs/cgroup", "cgroup2", "rw,nsdelegate");
  allow("0-63");
  group("", "cpu.max", "400000 100000");
  group("", "memory.max", "7000");
  EXPECT_EQ(cpu_limits(root_).threads(), 4);
  write("proc/self/cgroup", "0::/../neighbour\n");  // moved out, as by `exec` into a container
  EXPECT_EQ(cpu_limits(root_).threads(), 4);
  EXPECT_EQ(memory_limits(root_).limit_bytes, 7000u);
}

TEST_F(Limits, OfNothingAreTheMachines) {
  const CpuLimits cpus = cpu_limits(root_);
  EXPECT_EQ(cpus.quota, std::nullopt);
  EXPECT_GE(cpus.threads(), 1);
  const MemoryLimits memory = memory_limits(root_);
  EXPECT_EQ(memory.limit_bytes, std::nullopt);
  EXPECT_EQ(memory.left_bytes(), memory.physical_bytes);
  EXPECT_EQ(memory.usable_bytes(), memory.physical_bytes);
  EXPECT_EQ(cgroup_version(root_), 0);
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
