// SPDX-License-Identifier: Apache-2.0
#pragma once

// Thread placement: detects which CPUs share a core and which cores share memory, and computes the CPU set for each
// thread.

#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

// CPUs are identified by the kernel's numbers, in ascending order.
struct CpuTopology {
  struct Core {
    std::vector<int> cpus;  // hyper-threads
  };
  struct Node {
    int number = 0;  // NUMA node
    std::vector<Core> cores;
  };
  std::vector<Node> nodes;  // nodes with a usable CPU
};

// Reads the topology of the CPUs in `usable` from /sys/devices/system. If data is missing, the function assumes one
// node and one CPU per core. `root` replaces the location of /sys in tests.
CpuTopology read_topology(const std::vector<int>& usable, const std::string& root = "");

struct PlacementWish {
  int threads = 1;
  std::optional<int> near_node;     // filled first: the node that uses the batches
  bool leaves_a_core_free = false;  // of that node, for the thread that launches GPU work
};

// Returns the CPUs on which each thread may run. Threads fill the cores of the near node first, then those of the other
// nodes, then the second hyper-threads in the same order. A thread may use all CPUs assigned to its node's threads, not
// just one, so the kernel can move it away from other load but not away from its memory. The result is empty (no
// restriction) if there is only one node and no core to leave free, or if there are more threads than CPUs.
std::vector<std::vector<int>> place_threads(const CpuTopology& topology, const PlacementWish& wish);

// Binds the calling thread to these CPUs. If that fails, the thread stays unbound.
void run_on(const std::vector<int>& cpus);

}  // namespace feedline::base
