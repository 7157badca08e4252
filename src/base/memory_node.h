// SPDX-License-Identifier: Apache-2.0
#pragma once

// NUMA nodes of memory: which one a device is nearest to, and asking for pages there.

#include <optional>
#include <string>

namespace feedline::base {

struct MemoryNode {
  std::optional<int> number;  // nullopt: no node is better than another, or it is not known which
  std::string why;            // then: in words
};

// Of a PCI device ("0000:c1:00.0", in any case), from /sys and this process's cpuset. `root` is a seam for tests: where
// /sys and /proc are.
MemoryNode memory_node_of(const std::string& pci_device, const std::string& root = "");

// Memory policies of the calling thread (set_mempolicy(2)); each call gives 0 or an errno. A seam for tests.
struct MemoryPolicies {
  int (*get)(int& mode);
  int (*prefer)(int node);
  int (*reset)();
};
const MemoryPolicies& kernel_memory_policies();

// While it lives, the calling thread's new pages come from a node as long as that has any. Where somebody has set a
// policy, as numactl does, or the kernel refuses, all is as it was.
class OnMemoryNode {
 public:
  // nullopt: does nothing.
  explicit OnMemoryNode(std::optional<int> node, const MemoryPolicies& policies = kernel_memory_policies());
  ~OnMemoryNode();
  OnMemoryNode(const OnMemoryNode&) = delete;
  OnMemoryNode& operator=(const OnMemoryNode&) = delete;

  enum class Outcome { kNotAsked, kPreferred, kGiven, kRefused };  // kGiven: a policy that somebody has set stays
  Outcome outcome() const { return outcome_; }

 private:
  const MemoryPolicies& policies_;
  Outcome outcome_ = Outcome::kNotAsked;
};

}  // namespace feedline::base
