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

// The node that a process's threads fill first. One process alone: where its training loop runs now, on `cpu`. Several
// with the same CPUs: an equal share of the nodes each, for where their loops run now says little, and all of them on
// one node would be worst.
std::optional<int> near_node(const base::CpuTopology& topology, int cpu, const LocalRanks& ranks);

// The CPUs of each worker thread of a loader that the calling thread uses; empty: anywhere. FEEDLINE_PLACEMENT=off:
// always anywhere. leaves_core: see base::PlacementWish.
std::vector<std::vector<int>> place_workers(int threads, bool leaves_core = false);

}  // namespace feedline::pipeline
