// SPDX-License-Identifier: Apache-2.0
#pragma once

// Thread placement: which CPUs share a core, which cores share memory, and CPU sets computed from that.

#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

// CPUs by their kernel numbers, ascending.
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

// Reads the topology of the CPUs in `usable` from /sys/devices/system. Missing data means one node, and one CPU per
// core. `root` is the location of /sys, replaceable in tests.
CpuTopology read_topology(const std::vector<int>& usable, const std::string& root = "");

struct PlacementWish {
  int threads = 1;
  std::optional<int> near_node;     // filled first: the node that uses the batches
  bool leaves_a_core_free = false;  // of that node, for the thread that launches GPU work
};

// The CPUs on which each thread may run. Threads fill the near node's cores, then the other nodes', then the second
// hyper-threads in the same order. A thread may use all CPUs that its node's threads use, not just one: the kernel can
// move it around other load, but not away from its memory. Empty: every thread may run anywhere, because there is only
// one node and no core to leave free, or there are more threads than CPUs.
std::vector<std::vector<int>> place_threads(const CpuTopology& topology, const PlacementWish& wish);

// Binds the calling thread to these CPUs. Failure is harmless: the thread is then not bound.
void run_on(const std::vector<int>& cpus);

}  // namespace feedline::base
