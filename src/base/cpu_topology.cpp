// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/group_limits.h"

namespace feedline::base {
namespace {

// Reads a list of numbers from a /sys file.
std::vector<int> read_list(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return number_list(text);
}

// One entry per thread: first all cores of the nodes, then their second hyper-threads.
struct Turn {
  std::size_t node;
  std::size_t hyper_thread;
};

std::vector<Turn> turns_of(const std::vector<CpuTopology::Node>& nodes) {
  std::vector<Turn> turns;
  for (std::size_t level = 0, before = 0;; ++level, before = turns.size()) {
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (const auto& core : nodes[node].cores)
        if (core.cpus.size() > level) turns.push_back({node, level});
    if (turns.size() == before) return turns;
  }
}

}  // namespace

CpuTopology read_topology(const std::vector<int>& usable, const std::string& root) {
  const std::string system = root + "/sys/devices/system/";
  std::map<int, int> node_of;
  for (const int node : read_list(system + "node/online"))
    for (const int cpu : read_list(system + "node/node" + std::to_string(node) + "/cpulist")) node_of[cpu] = node;
  std::map<int, std::map<int, CpuTopology::Core>> nodes;  // node -> first hyper-thread of the core -> core
  for (const int cpu : std::set<int>(usable.begin(), usable.end())) {
    const auto siblings = read_list(system + "cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    const int core = siblings.empty() ? cpu : std::ranges::min(siblings);
    const auto node = node_of.find(cpu);
    nodes[node == node_of.end() ? 0 : node->second][core].cpus.push_back(cpu);
  }
  CpuTopology topology;
  for (auto& [number, cores] : nodes) {
    CpuTopology::Node& node = topology.nodes.emplace_back(CpuTopology::Node{number, {}});
    for (auto& [first, core] : cores) node.cores.push_back(std::move(core));
  }
  return topology;
}

std::vector<std::vector<int>> place_threads(const CpuTopology& topology, const PlacementWish& wish) {
  auto nodes = topology.nodes;
  const auto near = std::ranges::find_if(nodes, [&](const auto& node) { return node.number == wish.near_node; });
  if (near != nodes.end()) std::rotate(nodes.begin(), near, near + 1);
  std::size_t cores = 0;
  for (const auto& node : nodes) cores += node.cores.size();
  const bool leaves_core = wish.leaves_a_core_free && cores > 1;
  if (leaves_core) nodes.front().cores.erase(nodes.front().cores.begin());
  if (nodes.size() < 2 && !leaves_core) return {};
  const std::vector<Turn> turns = turns_of(nodes);
  const auto threads = static_cast<std::size_t>(std::max(wish.threads, 0));
  if (threads > turns.size()) return {};
  std::vector<std::size_t> levels(nodes.size(), 0);  // hyper-threads per core used by a node's threads
  for (std::size_t i = 0; i < threads; ++i) levels[turns[i].node] = turns[i].hyper_thread + 1;
  std::vector<std::vector<int>> placed;
  for (std::size_t i = 0; i < threads; ++i) {
    std::vector<int>& cpus = placed.emplace_back();
    for (const auto& core : nodes[turns[i].node].cores)
      for (std::size_t level = 0; level < std::min(levels[turns[i].node], core.cpus.size()); ++level)
        cpus.push_back(core.cpus[level]);
    std::ranges::sort(cpus);
  }
  return placed;
}

void run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace feedline::base
