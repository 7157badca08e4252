// SPDX-License-Identifier: Apache-2.0
#pragma once

// NUMA memory nodes: finds the node nearest to a device, and allocates pages there.

#include <optional>
#include <string>

namespace feedline::base {

struct MemoryNode {
  std::optional<int> number;  // nullopt: no node is nearest, or it is unknown
  std::string why;            // the reason in that case
};

// Returns the node of a PCI device ("0000:c1:00.0", case-insensitive), from /sys and this process's cpuset. `root`
// replaces the location of /sys and /proc in tests.
MemoryNode memory_node_of(const std::string& pci_device, const std::string& root = "");

// Memory policies of the calling thread (set_mempolicy(2)); each function returns 0 or an errno. Replaceable in tests.
struct MemoryPolicies {
  int (*get)(int& mode);
  int (*prefer)(int node);
  int (*reset)();
};
const MemoryPolicies& kernel_memory_policies();

// While this object exists, new pages of the calling thread are allocated on a node if that node has free memory. Has
// no effect if a policy is already set, for example by numactl, or if the kernel refuses.
class OnMemoryNode {
 public:
  // nullopt: does nothing.
  explicit OnMemoryNode(std::optional<int> node, const MemoryPolicies& policies = kernel_memory_policies());
  ~OnMemoryNode();
  OnMemoryNode(const OnMemoryNode&) = delete;
  OnMemoryNode& operator=(const OnMemoryNode&) = delete;

  enum class Outcome { kNotAsked, kPreferred, kGiven, kRefused };  // kGiven: an existing policy is not changed
  Outcome outcome() const { return outcome_; }

 private:
  const MemoryPolicies& policies_;
  Outcome outcome_ = Outcome::kNotAsked;
};

}  // namespace feedline::base
