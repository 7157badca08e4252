// SPDX-License-Identifier: Apache-2.0
#include "base/memory_node.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <fstream>
#include <vector>

#include "base/group_limits.h"

namespace feedline::base {
namespace {

constexpr std::size_t kMostNodes = 1024;  // of Linux
constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the memory nodes in the process's cpuset; empty if not reported.
std::vector<int> allowed_nodes(const std::string& root) {
  constexpr std::string_view kName = "Mems_allowed_list:";
  std::ifstream file(root + "/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kName)) return number_list(line.substr(std::min(line.size(), kName.size() + 1)));  // a tab
  return {};
}

int status_of(long result) { return result == 0 ? 0 : errno; }

}  // namespace

MemoryNode memory_node_of(const std::string& pci_device, const std::string& root) {
  if (number_list(first_line(root + "/sys/devices/system/node/online")).size() < 2)
    return {std::nullopt, "the machine has one NUMA node"};
  std::string name = pci_device;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string text = first_line(root + "/sys/bus/pci/devices/" + name + "/numa_node");
  const std::vector<int> reported = number_list(text);
  if (reported.size() != 1 || reported.front() < 0)
    return {std::nullopt, "the system does not report the GPU's NUMA node"};
  const std::vector<int> allowed = allowed_nodes(root);
  if (!allowed.empty() && std::ranges::find(allowed, reported.front()) == allowed.end())
    return {std::nullopt,
            "the GPU's NUMA node " + std::to_string(reported.front()) + " is not available to this process"};
  return {reported.front(), ""};
}

const MemoryPolicies& kernel_memory_policies() {
  static constexpr MemoryPolicies kKernel{
      [](int& mode) { return status_of(syscall(SYS_get_mempolicy, &mode, nullptr, 0ul, nullptr, 0ul)); },
      [](int node) {
        std::array<unsigned long, kMostNodes / kWordBits> nodes{};
        const auto at = static_cast<std::size_t>(node);
        if (at >= kMostNodes) return EINVAL;
        nodes[at / kWordBits] |= 1ul << at % kWordBits;
        return status_of(syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes.data(), kMostNodes));
      },
      [] { return status_of(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0ul)); }};
  return kKernel;
}

OnMemoryNode::OnMemoryNode(std::optional<int> node, const MemoryPolicies& policies) : policies_(policies) {
  if (!node) return;
  int mode = MPOL_DEFAULT;
  if (policies_.get(mode) != 0)
    outcome_ = Outcome::kRefused;
  else if (mode != MPOL_DEFAULT)
    outcome_ = Outcome::kGiven;
  else
    outcome_ = policies_.prefer(*node) == 0 ? Outcome::kPreferred : Outcome::kRefused;
}

OnMemoryNode::~OnMemoryNode() {
  if (outcome_ == Outcome::kPreferred) policies_.reset();
}

}  // namespace feedline::base
