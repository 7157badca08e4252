// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_topology.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/cpus.h"

namespace feedline::base {
namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::vector<int>>;

std::vector<int> range(int first, int last) {
  std::vector<int> numbers(static_cast<std::size_t>(last - first + 1));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// A simulated /sys.
class Topology : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("feedline_topology_test_" + std::to_string(getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const fs::path file = root_ / "sys/devices/system" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  // Linux numbers the second hyper-threads after all first ones: node 0 has 0-7 and 16-23, node 1 has 8-15 and 24-31.
  void two_nodes_of_eight_cores() {
    write("node/online", "0-1");
    write("node/node0/cpulist", "0-7,16-23");
    write("node/node1/cpulist", "8-15,24-31");
    for (int cpu = 0; cpu < 32; ++cpu)
      write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
            std::to_string(cpu % 16) + "," + std::to_string(cpu % 16 + 16));
  }
  CpuTopology read(const std::vector<int>& usable) { return read_topology(usable, root_); }
  static std::string text(const CpuTopology& topology) {
    std::string text;
    for (const auto& node : topology.nodes) {
      text += "node" + std::to_string(node.number) + ":";
      for (const auto& core : node.cores) {
        text += " ";
        for (const int cpu : core.cpus) text += (cpu == core.cpus.front() ? "" : "+") + std::to_string(cpu);
      }
      text += ";";
    }
    return text;
  }
  fs::path root_;
};

TEST_F(Topology, ReadsNodesAndHyperThreads) {
  two_nodes_of_eight_cores();
  EXPECT_EQ(text(read(range(0, 31))),
            "node0: 0+16 1+17 2+18 3+19 4+20 5+21 6+22 7+23;node1: 8+24 9+25 10+26 11+27 12+28 13+29 14+30 15+31;");
}

TEST_F(Topology, TakesWhatACpusetLeaves) {
  two_nodes_of_eight_cores();
  EXPECT_EQ(text(read({3, 18, 2, 30})), "node0: 2+18 3;node1: 30;");
  EXPECT_EQ(text(read({9, 25})), "node1: 9+25;");
}

TEST_F(Topology, AsksForNothingThatSysDoesNotSay) {
  EXPECT_EQ(text(read({0, 1})), "node0: 0 1;");
  write("node/online", "0-x,,7");
  write("node/node0/cpulist", "garbage");
  write("cpu/cpu0/topology/thread_siblings_list", "");
  EXPECT_EQ(text(read({0, 1})), "node0: 0 1;");
  EXPECT_EQ(text(read({})), "");
}

TEST_F(Topology, LeavesThreadsAloneOnASmallMachine) {
  const CpuTopology two{{{0, {{{0}}, {{1}}}}}};
  EXPECT_EQ(place_threads(two, {.threads = 2}), Sets());
  EXPECT_EQ(place_threads(two, {.threads = 1, .leaves_a_core_free = true}), (Sets{{1}}));
  EXPECT_EQ(place_threads(two, {.threads = 2, .leaves_a_core_free = true}), Sets()) << "more threads than CPUs";
  const CpuTopology one{{{0, {{{0, 1}}}}}};
  EXPECT_EQ(place_threads(one, {.threads = 1, .leaves_a_core_free = true}), Sets()) << "no second core";
  EXPECT_EQ(place_threads({}, {.threads = 1}), Sets());
}

TEST_F(Topology, FillsTheNearNodeThenTheOtherAndHyperThreadsLast) {
  two_nodes_of_eight_cores();
  const CpuTopology topology = read(range(0, 31));
  EXPECT_EQ(place_threads(topology, {.threads = 3}), Sets(3, range(0, 7)));
  EXPECT_EQ(place_threads(topology, {.threads = 3, .near_node = 1}), Sets(3, range(8, 15)));
  EXPECT_EQ(place_threads(topology, {.threads = 3, .near_node = 5}), Sets(3, range(0, 7))) << "no such node";
  const Sets ten = place_threads(topology, {.threads = 10, .near_node = 1});
  EXPECT_EQ(std::ranges::count(ten, range(8, 15)), 8);
  EXPECT_EQ(std::ranges::count(ten, range(0, 7)), 2);
  const Sets twenty = place_threads(topology, {.threads = 20, .near_node = 1});
  std::vector<int> whole = range(8, 15);
  for (const int cpu : range(24, 31)) whole.push_back(cpu);
  EXPECT_EQ(std::ranges::count(twenty, whole), 12) << "its second hyper-threads too";
  EXPECT_EQ(std::ranges::count(twenty, range(0, 7)), 8);
  EXPECT_EQ(place_threads(topology, {.threads = 32}).size(), 32u);
  EXPECT_EQ(place_threads(topology, {.threads = 33}), Sets());
}

TEST_F(Topology, LeavesACoreOfTheNearNodeFree) {
  two_nodes_of_eight_cores();
  const Sets placed =
      place_threads(read(range(0, 31)), {.threads = 31 - 1, .near_node = 1, .leaves_a_core_free = true});
  ASSERT_EQ(placed.size(), 30u);
  for (const auto& cpus : placed) {
    EXPECT_EQ(std::ranges::count(cpus, 8), 0);
    EXPECT_EQ(std::ranges::count(cpus, 24), 0);
  }
  // a cpuset that has one core there: the other node takes all
  EXPECT_EQ(place_threads(read({0, 1, 2, 8}), {.threads = 2, .near_node = 1, .leaves_a_core_free = true}),
            (Sets{{0, 1, 2}, {0, 1, 2}}));
}

TEST_F(Topology, BindsTheCallingThread) {
  const std::vector<int> before = affinity();
  ASSERT_FALSE(before.empty());
  run_on({before.back()});
  EXPECT_EQ(affinity(), std::vector<int>{before.back()});
  run_on(before);
  EXPECT_EQ(affinity(), before);
  run_on({});  // refused by the kernel
  EXPECT_EQ(affinity(), before);
}

}  // namespace
}  // namespace feedline::base
