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

// The NUMA node that a process's threads use first. For a single process: the node of `cpu`, where its training loop
// runs now. For several processes with the same CPUs: an equal share of the nodes each, because the current CPUs of
// their loops are not significant, and placing all on one node would be worst.
std::optional<int> near_node(const base::CpuTopology& topology, int cpu, const LocalRanks& ranks);

// Returns the CPUs of each worker thread of a loader used by the calling thread; empty if unrestricted.
// leaves_core: see base::PlacementWish.
std::vector<std::vector<int>> place_workers(int threads, bool leaves_core = false);

}  // namespace feedline::pipeline
