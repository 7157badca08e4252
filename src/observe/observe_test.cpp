// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "feedline/observe.h"
#include "observe/fake_root.h"
#include "observe/host.h"
#include "observe/proc_file.h"
#include "observe/process_tree.h"

namespace feedline::observe {
namespace {

constexpr std::uint64_t kAnyBudget = 1'000'000'000;

TEST(ProcFile, TakesNamesWithBracketsAndSpaces) {
  const auto stat = process_stat("7 (a) b ) R 3 1 1 0 -1 0 5 0 6 0 11 22 0 0 20 0 4 0 99 1000 8 0");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->minor_faults, 5u);
  EXPECT_EQ(stat->system_ticks, 22u);
  EXPECT_EQ(stat->major_faults, 6u);
  EXPECT_EQ(stat->ticks, 33u);
  EXPECT_EQ(stat->threads, 4u);
  EXPECT_EQ(stat->start, 99u);
  EXPECT_EQ(stat->resident_pages, 8u);
  EXPECT_FALSE(stat->ended);
  EXPECT_FALSE(process_stat("7 (a"));
  EXPECT_FALSE(process_stat("7 (a) R 1 2"));
}

TEST(ProcFile, FindsNumbers) {
  EXPECT_EQ(number_behind("rchar: 5\nread_bytes: 12\n", "read_bytes"), 12u);
  EXPECT_EQ(number_behind("throttled_usec 7\n", "throttled_usec"), 7u);
  EXPECT_EQ(number_behind("xread_bytes: 12\n", "read_bytes"), std::nullopt);
  EXPECT_EQ(number_behind("max x\n", "max"), std::nullopt);
  EXPECT_EQ(pressure_ns("some avg10=1.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n"), 1'234'000u);
  EXPECT_EQ(pressure_ns("full total=9\n"), std::nullopt);
}

TEST(ProcessTree, FollowsChildrenOfChildrenAndNobodyElse) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  root.process(20, 50, 20, 2000);  // numbers have wrapped: the child's is smaller
  root.process(60, 20, 30, 3000, "pt data) worker");
  root.process(70, 1, 40, 4000);
  ProcessTree tree(root.path(), 50);
  auto sample = tree.sample(5);
  ASSERT_EQ(sample.size(), 3u);
  EXPECT_EQ(sample[0].pid, 20);
  EXPECT_EQ(sample[0].parent, 50);
  EXPECT_EQ(sample[0].time_ns, 5u);
  EXPECT_EQ(sample[0].cpu_ns, 200'000'000u);
  EXPECT_EQ(sample[0].delay_ns, 2000u);
  EXPECT_EQ(sample[0].read_bytes, 100u);
  EXPECT_EQ(sample[0].read_calls, 4u);
  EXPECT_EQ(sample[0].device_bytes, 4096u);
  EXPECT_EQ(sample[1].pid, 50);
  EXPECT_EQ(sample[2].pid, 60);

  root.remove("proc/20");
  root.process(60, 1, 31, 3000);  // its parent has ended; it stays in the tree
  sample = tree.sample(6);
  ASSERT_EQ(sample.size(), 2u);
  EXPECT_EQ(sample[1].pid, 60);
  EXPECT_EQ(sample[1].cpu_ns, 310'000'000u);
}

TEST(ProcessTree, RemembersTheDelayOfThreadsThatEnded) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  root.write("proc/50/task/51/schedstat", "9 500 1");
  ProcessTree tree(root.path(), 50);
  EXPECT_EQ(tree.sample(1)[0].delay_ns, 1500u);
  root.remove("proc/50/task/51");
  root.process(50, 1, 10, 1000, "python", 3);
  EXPECT_EQ(tree.sample(2)[0].delay_ns, 1500u);
  root.write("proc/50/task/52/schedstat", "9 70 1");
  root.process(50, 1, 10, 1000, "python", 4);
  EXPECT_EQ(tree.sample(3)[0].delay_ns, 1570u);
}

TEST(ProcessTree, SharesMemoryOutAndFallsBackToWhatIsPrivate) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  root.process(60, 50, 10, 1000);
  root.write("proc/50/smaps_rollup", "0-1 ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 300 kB\nPss_Dirty: 7 kB\n");
  root.write("proc/60/statm", "5000 30 20 1 0 9 0\n");
  ProcessTree tree(root.path(), 50);
  tree.sample(1);
  const auto memory = tree.memory(2, kAnyBudget);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->bytes, 300u * 1024 + 10u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  EXPECT_FALSE(memory->exact);
  root.write("proc/60/smaps_rollup", "Pss: 1 kB\n");
  EXPECT_TRUE(tree.memory(3, kAnyBudget)->exact);
}

TEST(ProcessTree, GoesThroughNoFolderWhereNothingWasMade) {
  const FakeRoot root;
  for (const int pid : {50, 60, 70}) root.process(pid, pid == 50 ? 1 : 50, 10, 1000);
  root.write("proc/loadavg", "0.1 0.2 0.3 1/90 70\n");
  ProcessTree tree(root.path(), 50);
  ASSERT_EQ(tree.sample(1).size(), 3u);
  Opens opens(root);
  root.process(60, 50, 11, 1500);
  const std::uint64_t opened_here = opens.count();  // by the line above
  const auto sample = tree.sample(2);
  ASSERT_EQ(sample.size(), 3u);
  EXPECT_EQ(sample[1].cpu_ns, 110'000'000u);  // open files are read again
  EXPECT_EQ(sample[1].delay_ns, 1500u);
  EXPECT_EQ(opens.count() - opened_here, 0u);

  root.process(80, 60, 1, 1);
  root.write("proc/loadavg", "0.1 0.2 0.3 1/91 80\n");
  EXPECT_EQ(tree.sample(3).size(), 4u);
}

TEST(ProcessTree, ReadsNothingOfThoseThatWereThereBeforeAYoungProcess) {
  const FakeRoot root;  // whose processes were created 0.77 s after its start
  root.process(40, 1, 10, 1000, "elder");
  root.process(50, 40, 10, 1000);
  root.process(60, 50, 10, 1000);
  root.write("proc/loadavg", "0.1 0.2 0.3 1/90 60\n");
  const auto opened_with = [&](std::string_view uptime) {
    root.write("proc/uptime", uptime);
    ProcessTree tree(root.path(), 50);
    Opens opens(root);
    EXPECT_EQ(tree.sample(1).size(), 2u);
    return opens.count("stat");
  };
  EXPECT_EQ(opened_with("8.25 1.00\n"), 4u);  // for its age, the child's identity, and opening both persistently
  EXPECT_GT(opened_with("100.25 1.00\n"), 4u);
}

TEST(ProcessTree, FindsChildrenWhoseNumbersHaveComeRound) {
  const FakeRoot root;
  root.process(50, 40, 10, 1000);
  root.process(7, 50, 10, 1000);
  root.write("proc/loadavg", "0.1 0.2 0.3 1/90 7\n");
  root.write("proc/uptime", "1.25 1.00\n");
  EXPECT_EQ(ProcessTree(root.path(), 50).sample(1).size(), 2u);
}

TEST(ProcessTree, LooksAtPagesInTurnWithinABudget) {
  const FakeRoot root;
  for (const int pid : {50, 60, 70}) {
    root.process(pid, pid == 50 ? 1 : 50, 10, 1000);
    root.write("proc/" + std::to_string(pid) + "/smaps_rollup", "Pss: 4 kB\n");
    root.write("proc/" + std::to_string(pid) + "/statm", "5000 3 2 1 0 9 0\n");
  }
  ProcessTree tree(root.path(), 50);
  tree.sample(1);
  const auto looks = [&](std::uint64_t budget_ns, std::uint64_t now_ns) {
    Opens opens(root);
    tree.memory(now_ns, budget_ns);
    return opens.count("smaps_rollup");
  };
  constexpr std::uint64_t kOfFewPages = 1000;  // opening and reading a file takes longer
  EXPECT_EQ(looks(0, 2), 0u);
  EXPECT_EQ(looks(kOfFewPages, 3), 1u);
  EXPECT_FALSE(tree.memory(4, 0));  // for most of the memory, sharing is not known yet
  EXPECT_EQ(looks(kOfFewPages, 5), 1u);
  EXPECT_FALSE(tree.memory(6, 0)->exact);
  EXPECT_EQ(looks(kOfFewPages, 7), 1u);
  EXPECT_EQ(looks(kOfFewPages, 8), 0u);  // by now the cost of each is known
  EXPECT_EQ(looks(kAnyBudget, 9), 3u);
  const auto memory = tree.memory(10, 0);
  ASSERT_TRUE(memory);
  EXPECT_TRUE(memory->exact);
  EXPECT_EQ(memory->bytes, 3u * 4096);
}

TEST(ProcessTree, LooksAtNoProcessThatIsTooLargeForTheBudget) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000, "python", 1, 1'000'000);
  root.write("proc/50/smaps_rollup", "Pss: 4 kB\n");
  ProcessTree tree(root.path(), 50);
  tree.sample(1);
  Opens opens(root);
  EXPECT_FALSE(tree.memory(2, 1'000'000));
  EXPECT_EQ(opens.count("smaps_rollup"), 0u);
  EXPECT_TRUE(tree.memory(3, kAnyBudget));
  EXPECT_EQ(tree.resident_bytes(), 1'000'000u * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

TEST(ProcessTree, KnowsWhatAnOpenFileIsFor) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  std::filesystem::create_directories(root.path("proc/50/fd"));
  std::filesystem::create_symlink("/data/shard.tar", root.path("proc/50/fd/3"));
  root.write("proc/50/fdinfo/3", "flags:\t0100000\n");
  ProcessTree tree(root.path(), 50);
  tree.sample(1);
  std::set<std::string> files;
  tree.add_open_files(files, 9);
  Opens opens(root);
  tree.add_open_files(files, 9);
  EXPECT_EQ(opens.count("3"), 0u);
  root.remove("proc/50/fd/3");
  std::filesystem::create_symlink("/data/next.tar", root.path("proc/50/fd/3"));
  tree.add_open_files(files, 9);
  EXPECT_EQ(opens.count("3"), 1u);
  EXPECT_EQ(files, (std::set<std::string>{"/data/next.tar", "/data/shard.tar"}));
}

TEST(ProcessTree, ListsFilesThatAreOpenForReading) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  const auto open = [&](int file, const std::string& target, const std::string& flags) {
    const std::string name = "proc/50/fd/" + std::to_string(file);
    std::filesystem::create_directories(root.path("proc/50/fd"));
    std::filesystem::create_symlink(target, root.path(name));
    root.write("proc/50/fdinfo/" + std::to_string(file), "pos:\t0\nflags:\t" + flags + "\nmnt_id:\t29\n");
  };
  open(0, "/dev/null", "0100000");
  open(3, "/data/shard-000.tar", "02100000");
  open(4, "/data/log.txt", "0100001");
  open(5, "pipe:[77]", "0100000");
  open(6, "/data/gone (deleted)", "0100000");
  open(7, "/data/both.bin", "0100002");
  open(8, "/data/shard-001.tar", "0100000");
  ProcessTree tree(root.path(), 50);
  tree.sample(1);
  std::set<std::string> files;
  tree.add_open_files(files, 9);
  EXPECT_EQ(files, (std::set<std::string>{"/data/shard-000.tar", "/data/shard-001.tar"}));
  std::set<std::string> few;
  tree.add_open_files(few, 1);
  EXPECT_EQ(few.size(), 1u);
}

TEST(ProcessTree, TellsWhatItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  ::chmod(root.path("proc/50/io").c_str(), 0);
  ProcessTree tree(root.path(), 50);
  EXPECT_EQ(tree.sample(1).size(), 1u);
  EXPECT_TRUE(tree.unreadable().contains(50));
}

TEST(Host, ReadsVersionTwoGroups) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "0::/job\n");
  root.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 9\nthrottled_usec 7\n");
  root.write("sys/fs/cgroup/job/memory.events", "low 0\nhigh 1\nmax 3\noom 1\noom_kill 1\n");
  root.write("sys/fs/cgroup/job/io.pressure", "some avg10=0 avg60=0 avg300=0 total=40\n");
  root.write("proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=50\n");
  root.write("proc/stat", "cpu  1 2 3 400 500 6 7 8 0 0\ncpu0 1 1 1 1\n");
  root.write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 5 kB\n");
  root.write("sys/block/vda/size", "1");
  root.write("proc/diskstats", "8 0 vda 10 0 20 30 0\n8 1 vda1 10 0 20 30 0\n7 0 loop0 5 0 5 5 0\n");
  const HostCounters counters = Host(root.path(), 50).sample(3);
  EXPECT_EQ(counters.time_ns, 3u);
  EXPECT_EQ(counters.throttled_ns, 7000u);
  EXPECT_EQ(counters.memory_events, 4u);
  EXPECT_EQ(counters.io_pressure_ns, 40'000u);   // of the group
  EXPECT_EQ(counters.cpu_pressure_ns, 50'000u);  // of the machine, because the group has none
  EXPECT_EQ(counters.memory_pressure_ns, std::nullopt);
  EXPECT_EQ(counters.busy_ns, 27u * 10'000'000u);
  EXPECT_EQ(counters.available_bytes, 5u * 1024);
  EXPECT_EQ(counters.disk_reads, 10u);  // the partition's and the loop device's reads are not counted twice
  EXPECT_EQ(counters.disk_bytes, 20u * 512);
  EXPECT_EQ(counters.disk_read_ns, 30'000'000u);
}

TEST(Host, OpensItsFilesOnce) {
  const FakeRoot root;
  root.write("proc/stat", "cpu  1 2 3 400 500 6 7 8 0 0\n");
  root.write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable: 5 kB\nSwapTotal:       0 kB\n");
  root.write("proc/vmstat", "pswpin 3\npswpout 4\n");
  root.write("proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=50\n");
  Host host(root.path(), 50);
  Opens first(root);
  EXPECT_EQ(host.sample(1).swapped_pages, 0u);
  EXPECT_EQ(first.count("vmstat"), 0u);  // there is no swap
  root.write("proc/pressure/cpu", "some avg10=0 avg60=0 avg300=0 total=60\n");
  Opens opens(root);
  EXPECT_EQ(host.sample(2).cpu_pressure_ns, 60'000u);
  EXPECT_EQ(opens.count(), 0u);
  root.write("proc/meminfo", "MemAvailable: 5 kB\nSwapTotal: 8 kB\n");
  EXPECT_EQ(host.sample(3).swapped_pages, 7u);
}

TEST(Host, ReadsTheGroupsOfAProcessOnceAndNoCountersBeforeTheFirstSample) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "1:cpu,cpuacct:/job\n4:memory:/job\n0::/job\n");
  root.write("sys/fs/cgroup/job/cpu.stat", "throttled_usec 7\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.stat", "throttled_time 900\n");
  root.write("sys/fs/cgroup/memory/job/memory.failcnt", "6\n");
  Opens opens(root);
  Host host(root.path(), 50);
  EXPECT_EQ(opens.count(), 1u);
  EXPECT_EQ(host.sample(1).memory_events, 6u);
}

TEST(OpenProcFile, ReadsWhatIsLongerThanABuffer) {
  const FakeRoot root;
  const std::string longer(100'000, 'x');
  root.write("longer", longer);
  OpenProcFile file(root.path("longer"));
  std::string buffer;
  EXPECT_EQ(file.read(buffer), longer);
  root.write("longer", "short");
  EXPECT_EQ(file.read(buffer), "short");
  OpenProcFile absent(root.path("absent"));
  EXPECT_FALSE(absent.read(buffer));
  EXPECT_EQ(errno, ENOENT);
}

TEST(OpenProcFile, KeepsNoMoreThanItMay) {
  const FakeRoot root;
  root.write("file", "text");
  const auto descriptors = [&] { return numbered_entries("/proc/self/fd").size(); };
  const std::size_t before = descriptors();
  std::string buffer;
  {
    std::vector<OpenProcFile> files;
    for (int i = 0; i < 1000; ++i) files.emplace_back(root.path("file"));
    for (OpenProcFile& file : files) ASSERT_EQ(file.read(buffer), "text");
    EXPECT_LE(descriptors(), before + 300);
    EXPECT_GT(descriptors(), before);
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(Host, ReadsVersionOneGroupsAtTheTopOfAContainer) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "1:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n");
  root.write("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 900\n");
  root.write("sys/fs/cgroup/memory/memory.failcnt", "6\n");
  const HostCounters counters = Host(root.path(), 50).sample(3);
  EXPECT_EQ(counters.throttled_ns, 900u);
  EXPECT_EQ(counters.memory_events, 6u);
}

TEST(Host, TakesTheTightestLimitOfTheGroupsAboveAProcess) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec 7\n");
  root.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "3000\n");
  root.write("sys/fs/cgroup/memory.max", "4000\n");
  const Host host(root.path(), 50);
  EXPECT_EQ(host.quota_cpus(), 1.5);
  EXPECT_EQ(host.memory_limit_bytes(), 3000.0);
  const FakeRoot first;
  first.write("proc/50/cgroup", "1:cpu,cpuacct:/job\n4:memory:/job\n");
  first.write("sys/fs/cgroup/cpu/job/cpu.stat", "throttled_time 900\n");
  first.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  first.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  first.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  first.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  first.write("sys/fs/cgroup/memory/job/memory.failcnt", "0\n");
  first.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Host(first.path(), 50).quota_cpus(), 0.5);
  EXPECT_EQ(Host(first.path(), 50).memory_limit_bytes(), std::nullopt);
  const FakeRoot none;
  EXPECT_EQ(Host(none.path(), 50).quota_cpus(), std::nullopt);
}

TEST(Host, CountsWhatTheLimitsOfAParentDid) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "0::/box/job\n");
  root.write("proc/self/mountinfo", "30 20 0:26 / /groups rw - cgroup2 cgroup2 rw\n");
  root.write("groups/cpu.stat", "throttled_usec 1000\n");  // has no quota: not the process's own
  root.write("groups/box/cpu.max", "200000 100000\n");
  root.write("groups/box/cpu.stat", "throttled_usec 70\n");
  root.write("groups/box/memory.max", "5000\n");
  root.write("groups/box/memory.events", "max 9\noom 9\n");
  root.write("groups/box/memory.events.local", "max 3\noom 1\n");
  root.write("groups/box/job/cpu.stat", "throttled_usec 0\n");
  root.write("groups/box/job/memory.events", "max 0\noom 2\n");
  Host host(root.path(), 50);
  EXPECT_EQ(host.sample(1).throttled_ns, 70'000u);
  EXPECT_EQ(host.sample(2).memory_events, 6u);
  EXPECT_EQ(host.quota_cpus(), 2.0);
  EXPECT_EQ(host.memory_limit_bytes(), 5000.0);
}

TEST(Host, CountsWhatTheLimitsOfAParentDidInVersionOne) {
  const FakeRoot root;
  root.write("proc/50/cgroup", "2:cpu,cpuacct:/box/job\n4:memory:/box/job\n");
  root.write(
      "proc/self/mountinfo",
      "30 20 0:26 / /groups/cpu rw - cgroup c rw,cpu,cpuacct\n31 20 0:27 / /groups/memory rw - cgroup m rw,memory\n");
  root.write("groups/cpu/box/cpu.cfs_quota_us", "200000\n");
  root.write("groups/cpu/box/cpu.cfs_period_us", "100000\n");
  root.write("groups/cpu/box/cpu.stat", "nr_throttled 1\nthrottled_time 70\n");
  root.write("groups/cpu/box/job/cpu.stat", "throttled_time 5\n");
  root.write("groups/memory/box/memory.limit_in_bytes", "5000\n");
  root.write("groups/memory/box/memory.failcnt", "4\n");
  root.write("groups/memory/box/job/memory.failcnt", "1\n");
  const HostCounters counters = Host(root.path(), 50).sample(1);
  EXPECT_EQ(counters.throttled_ns, 75u);
  EXPECT_EQ(counters.memory_events, 5u);
}

TEST(Host, LooksAtTheSharedMemoryOfTheProcess) {
  const FakeRoot root;
  EXPECT_EQ(Host(root.path(), 50).sample(1).shared_memory_used, std::nullopt);
  std::filesystem::create_directories(root.path("proc/50/root") + "/dev/shm");
  const auto used = Host(root.path(), 50).sample(1).shared_memory_used;
  ASSERT_TRUE(used);
  EXPECT_GE(*used, 0.0);
  EXPECT_LE(*used, 1.0);
}

TEST(Host, SaysNothingWhereNothingCanBeRead) {
  const FakeRoot root;
  const HostCounters counters = Host(root.path(), 50).sample(3);
  EXPECT_FALSE(counters.throttled_ns || counters.cpu_pressure_ns || counters.io_pressure_ns ||
               counters.memory_pressure_ns || counters.memory_events);
}

TEST(HostSampler, WatchesThisProcess) {
  auto sampler = HostSampler::start({.pid = ::getpid(), .period_ns = 5'000'000});
  ASSERT_TRUE(sampler) << sampler.error().message();
  while (sampler->record().host.size() < 4 || sampler->record().memory.empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  sampler->stop();
  const HostRecord record = sampler->record();
  ASSERT_GE(record.processes.size(), 4u);
  EXPECT_EQ(record.processes.front().pid, ::getpid());
  EXPECT_GE(record.processes.back().cpu_ns, record.processes.front().cpu_ns);
  EXPECT_GT(record.processes.back().resident_bytes, 1u << 20);
  EXPECT_LT(record.host.front().time_ns, record.host.back().time_ns);
  EXPECT_GT(record.sampler_cpu_ns, 0u);
  ASSERT_FALSE(record.memory.empty());
  EXPECT_GT(record.memory.front().bytes, 64u << 10);  // proportional: other tests of this program share its pages
}

TEST(HostSampler, SamplesFromAFileOnAndFindsProcessesBefore) {
  const FakeRoot root;
  for (const int pid : {50, 60, 70, 80}) root.process(pid, pid == 50 ? 1 : pid - 10, 10, 1000);
  Opens opens(root);
  auto sampler = HostSampler::start(
      {.pid = 50, .period_ns = 1'000'000, .closely_from = root.path("loop"), .root = root.path(), .gpu_library = ""});
  ASSERT_TRUE(sampler);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };  // or the time limit
  while (opens.count("stat") < 4) pause();  // the last one's: by now the others have been processed
  EXPECT_EQ(opens.count("io"), 0u);
  EXPECT_EQ(opens.count("meminfo"), 0u);
  EXPECT_TRUE(sampler->record().host.empty());
  root.remove("proc/60");
  root.process(70, 1, 10, 1000);
  root.write("loop", "");
  while (sampler->record().host.empty()) pause();
  sampler->stop();
  const auto processes = sampler->record().processes;
  EXPECT_TRUE(std::ranges::any_of(processes, [](const ProcessCounters& one) { return one.pid == 70; }));
}

TEST(HostSampler, GoesThroughManyPagesOnlyNearALimit) {
  const auto rows_with = [](std::string_view limit) {
    const FakeRoot root;
    root.process(50, 1, 10, 1000, "python", 1, 300'000);  // 1.2 GB
    root.write("proc/50/smaps_rollup", "Pss: 4 kB\n");
    root.write("proc/50/cgroup", "0::/job\n");
    root.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 9\n");
    root.write("sys/fs/cgroup/job/memory.max", limit);
    std::filesystem::create_directories(root.path("proc/50/fd"));
    Opens opens(root);
    auto sampler = HostSampler::start({.pid = 50, .period_ns = 5'000'000, .root = root.path(), .gpu_library = ""});
    if (!sampler) return std::size_t{0};
    while (opens.count("fd") < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sampler->stop();
    return sampler->record().memory.size();
  };
  EXPECT_GT(rows_with("2000000000\n"), 0u);
  EXPECT_EQ(rows_with("20000000000\n"), 0u);
}

TEST(HostSampler, KeepsFilesThatStayOpen) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  std::filesystem::create_directories(root.path("proc/50/fd"));
  std::filesystem::create_symlink("/data/shard.tar", root.path("proc/50/fd/3"));
  root.write("proc/50/fdinfo/3", "flags:\t0100000\n");
  std::filesystem::create_symlink("/data/read-once", root.path("proc/50/fd/4"));
  root.write("proc/50/fdinfo/4", "flags:\t0100000\n");
  auto sampler = HostSampler::start({.pid = 50, .period_ns = 20'000'000, .root = root.path()});
  ASSERT_TRUE(sampler);
  const auto looks = [&] { return sampler->record().memory.size(); };
  while (looks() < 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  root.remove("proc/50/fd/4");
  while (looks() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  sampler->stop();
  EXPECT_EQ(sampler->record().files, std::vector<std::string>{"/data/shard.tar"});
}

TEST(HostSampler, StaysSmallHoweverLongItRuns) {
  const FakeRoot root;
  root.process(50, 1, 10, 1000);
  auto sampler = HostSampler::start({.pid = 50, .period_ns = 1'000'000, .root = root.path()});
  ASSERT_TRUE(sampler);
  // 2,048 samples at the maximum rate take seconds: the first thinning doubles the period
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  sampler->stop();
  EXPECT_LE(sampler->record().host.size(), 2048u);
  EXPECT_EQ(HostSampler::start({.pid = 0}).error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace feedline::observe
