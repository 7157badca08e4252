// SPDX-License-Identifier: Apache-2.0
#include "base/memory_node.h"

#include <linux/mempolicy.h>

#include <cerrno>
#include <vector>

#include "base/machine_fixture.h"

namespace feedline::base {
namespace {

class MemoryNodes : public MadeMachine {
 protected:
  void two_nodes(const std::string& of_device) {
    write("sys/devices/system/node/online", "0-1\n");
    write("sys/bus/pci/devices/0000:c1:00.0/numa_node", of_device + "\n");
  }
  std::string why(const std::string& device = "0000:C1:00.0") const {
    const MemoryNode node = memory_node_of(device, root_);
    EXPECT_FALSE(node.number);
    return node.why;
  }
};

TEST_F(MemoryNodes, IsTheDevicesWhoeverWritesItsName) {
  two_nodes("1");
  EXPECT_EQ(memory_node_of("0000:C1:00.0", root_).number, 1);
  EXPECT_EQ(memory_node_of("0000:c1:00.0", root_).number, 1);
  write("proc/self/status", "Name:\tpython\nMems_allowed_list:\t0-1\n");
  EXPECT_EQ(memory_node_of("0000:c1:00.0", root_).number, 1);
}

TEST_F(MemoryNodes, IsNoneWhereTheSystemDoesNotSay) {
  two_nodes("-1");
  EXPECT_EQ(why(), "the system does not report the GPU's NUMA node");
  EXPECT_EQ(why("0000:05:00.0"), "the system does not report the GPU's NUMA node") << "no such device";
  EXPECT_EQ(why(""), "the system does not report the GPU's NUMA node") << "the driver did not tell its name";
}

TEST_F(MemoryNodes, IsNoneWhereThereIsOne) {
  EXPECT_EQ(why(), "the machine has one NUMA node") << "nothing can be read";
  two_nodes("0");
  write("sys/devices/system/node/online", "0\n");
  EXPECT_EQ(why(), "the machine has one NUMA node");
}

TEST_F(MemoryNodes, IsNoneThatTheProcessMayNotUse) {
  two_nodes("1");
  write("proc/self/status", "Mems_allowed_list:\t0\n");
  EXPECT_EQ(why(), "the GPU's NUMA node 1 is not available to this process");
}

// Simulates the kernel's memory policy calls and records them.
struct Kernel {
  int mode = MPOL_DEFAULT, answers_get = 0, answers_prefer = 0;
  std::vector<int> calls;  // preferred nodes; -1: reset
};
Kernel kernel;
const MemoryPolicies kMade{[](int& mode) { return mode = kernel.mode, kernel.answers_get; },
                           [](int node) { return kernel.calls.push_back(node), kernel.answers_prefer; },
                           [] { return kernel.calls.push_back(-1), 0; }};
using enum OnMemoryNode::Outcome;

OnMemoryNode::Outcome outcome(Kernel made, std::optional<int> node) {
  kernel = std::move(made);
  const OnMemoryNode there(node, kMade);
  return there.outcome();
}

TEST(OnMemoryNode, PrefersItWhileItLives) {
  EXPECT_EQ(outcome({}, 3), kPreferred);
  EXPECT_EQ(kernel.calls, (std::vector{3, -1}));
}

TEST(OnMemoryNode, LeavesAllAsItWasWhereItMayNot) {
  EXPECT_EQ(outcome({}, std::nullopt), kNotAsked);
  EXPECT_TRUE(kernel.calls.empty());
  EXPECT_EQ(outcome({.mode = MPOL_INTERLEAVE}, 1), kGiven) << "numactl --interleave";
  EXPECT_TRUE(kernel.calls.empty());
  EXPECT_EQ(outcome({.answers_get = EPERM}, 1), kRefused) << "a container's filter of system calls";
  EXPECT_TRUE(kernel.calls.empty());
  EXPECT_EQ(outcome({.answers_prefer = EINVAL}, 1), kRefused) << "no such node";
  EXPECT_EQ(kernel.calls, std::vector{1}) << "and nothing is reset that was not set";
}

TEST(OnMemoryNode, TheKernelsOwnPolicyIsBackAfterwards) {
  const MemoryPolicies& policies = kernel_memory_policies();
  int before = -1, within = -1, after = -1;
  if (policies.get(before) != 0 || before != MPOL_DEFAULT) GTEST_SKIP() << "policies are not for this process";
  {
    const OnMemoryNode there(0);
    if (there.outcome() != kPreferred) GTEST_SKIP() << "this kernel has no NUMA policies";
    policies.get(within);
  }
  policies.get(after);
  EXPECT_EQ(within, MPOL_PREFERRED);
  EXPECT_EQ(after, MPOL_DEFAULT);
  EXPECT_EQ(policies.prefer(100'000), EINVAL);
}

}  // namespace
}  // namespace feedline::base
