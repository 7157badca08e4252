// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where threads should run: which CPUs share a core, which cores share memory, and a placement computed from that.

#include <optional>
#include <string>
#include <vector>

namespace feedline::base {

// CPUs by their numbers in the kernel, ascending.
struct CpuTopology {
  struct Core {
    std::vector<int> cpus;  // hyper-threads
  };
  struct Node {
    int number = 0;  // NUMA node
    std::vector<Core> cores;
  };
  std::vector<Node> nodes;  // that have a usable CPU
};

// Of the CPUs in `usable`, from /sys/devices/system. What it does not say is taken for one node, and for cores of one
// CPU. `root` is a seam for tests: where /sys is.
CpuTopology read_topology(const std::vector<int>& usable, const std::string& root = "");

struct PlacementWish {
  int threads = 1;
  std::optional<int> near_node;     // to fill first: where batches are used
  bool leaves_a_core_free = false;  // of that node: for the thread that launches work on a GPU
};

// The CPUs that each thread may run on. Threads fill the near node's cores, then the other nodes', then the second
// hyper-threads in the same order. A thread gets all CPUs that its node's threads use, not one CPU: the kernel knows
// what else runs and may move it, only not away from its memory. Empty: every thread may run anywhere, because there is
// but one node and no core to leave free, or more threads than CPUs.
std::vector<std::vector<int>> place_threads(const CpuTopology& topology, const PlacementWish& wish);

// Binds the calling thread to these CPUs. Failing is fine: it then runs where it did.
void run_on(const std::vector<int>& cpus);

}  // namespace feedline::base
