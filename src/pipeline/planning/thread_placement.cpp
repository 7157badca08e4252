// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/thread_placement.h"

#include <sched.h>

#include <algorithm>

#include "base/cpus.h"

namespace feedline::pipeline {

std::optional<int> near_node(const base::CpuTopology& topology, int cpu, const LocalRanks& ranks) {
  if (topology.nodes.empty()) return std::nullopt;
  const auto nodes = static_cast<int>(topology.nodes.size());
  if (ranks.count > 1) return topology.nodes[static_cast<std::size_t>(ranks.rank * nodes / ranks.count)].number;
  for (const auto& node : topology.nodes)
    for (const auto& core : node.cores)
      if (std::ranges::find(core.cpus, cpu) != core.cpus.end()) return node.number;
  return std::nullopt;
}

std::vector<std::vector<int>> place_workers(int threads, bool leaves_core) {
  const base::CpuTopology topology = base::read_topology(base::affinity());
  return base::place_threads(topology, {.threads = threads,
                                        .near_node = near_node(topology, ::sched_getcpu(), local_ranks()),
                                        .leaves_a_core_free = leaves_core});
}

}  // namespace feedline::pipeline
