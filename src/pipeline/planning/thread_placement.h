// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "base/cpu_topology.h"
#include "base/local_ranks.h"

namespace feedline::pipeline {

using base::local_ranks;
using base::LocalRanks;
using base::share_of_cpus;

// Returns the NUMA node that a process's threads use first. A single process uses the node of `cpu`, where its training
// loop is running. Several processes with the same CPUs get equal shares of the nodes: the CPUs on which their loops
// are running now are not significant, and placing all processes on one node would be slowest.
std::optional<int> near_node(const base::CpuTopology& topology, int cpu, const LocalRanks& ranks);

// Returns the CPUs of each worker thread of a loader that the calling thread uses; empty if unrestricted. leaves_core:
// see base::PlacementWish.
std::vector<std::vector<int>> place_workers(int threads, bool leaves_core = false);

}  // namespace feedline::pipeline
