// SPDX-License-Identifier: Apache-2.0
#include "pipeline/thread_placement.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/cpus.h"

namespace feedline::pipeline {
namespace {

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::atoi(text) : otherwise;
}

}  // namespace

LocalRanks local_ranks() {
  const LocalRanks ranks{number_from("LOCAL_RANK", 0), number_from("LOCAL_WORLD_SIZE", 1)};
  return ranks.count > 0 && ranks.rank >= 0 && ranks.rank < ranks.count ? ranks : LocalRanks();
}

int share_of_cpus(int usable, int bound, int online, const LocalRanks& ranks) {
  const bool is_shared_out = bound <= std::max(online / ranks.count, 1);
  return is_shared_out ? usable : std::max(usable / ranks.count, 1);
}

int share_of_cpus() {
  return share_of_cpus(base::usable_cpus(), static_cast<int>(base::affinity().size()),
                       static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), local_ranks());
}

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
  const char* wish = std::getenv("FEEDLINE_PLACEMENT");
  if (wish != nullptr && std::string_view(wish) == "off") return {};
  const base::CpuTopology topology = base::read_topology(base::affinity());
  return base::place_threads(topology, {.threads = threads,
                                        .near_node = near_node(topology, ::sched_getcpu(), local_ranks()),
                                        .leaves_a_core_free = leaves_core});
}

}  // namespace feedline::pipeline
