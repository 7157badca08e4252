// SPDX-License-Identifier: Apache-2.0
#include "base/local_ranks.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/cpus.h"

namespace feedline::base {
namespace {

struct Names {
  const char* rank;
  const char* count;
};

// Launchers may be nested, such as torchrun within Slurm: the first match is the one that started this process. Slurm
// is handled separately.
constexpr Names kLaunchers[] = {
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
};

std::optional<int> number(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::nullopt;
  int value = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<LocalRanks> checked(std::optional<int> rank, std::optional<int> count) {
  if (!rank || !count || *rank < 0 || *rank >= *count) return std::nullopt;
  return LocalRanks{*rank, *count};
}

// Slurm writes the number of tasks on each machine in a step in the form "4(x2),3".
std::optional<int> tasks_on(const std::optional<std::string>& text, int node) {
  if (!text) return std::nullopt;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find(',', begin), text->size());
    const std::string part = text->substr(begin, end - begin);
    const std::size_t times = part.find("(x");
    const auto tasks = number(part.substr(0, times));
    const auto repeats = times == std::string::npos ? 1 : number(part.substr(times + 2, part.find(')') - times - 2));
    if (!tasks || !repeats) return std::nullopt;
    node -= *repeats;
    if (node < 0) return tasks;
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<LocalRanks> slurm_ranks(const Environment& environment) {
  if (!environment("SLURM_STEP_ID")) return std::nullopt;  // the batch script itself, which is not one of its tasks
  const auto rank = number(environment("SLURM_LOCALID"));
  const int node = number(environment("SLURM_NODEID")).value_or(0);
  if (const auto ranks = checked(rank, tasks_on(environment("SLURM_STEP_TASKS_PER_NODE"), node))) return ranks;
  return checked(rank, number(environment("SLURM_NTASKS_PER_NODE")));
}

std::optional<LocalRanks> ranks_that_meet_here(const Environment& environment) {
  const auto address = environment("MASTER_ADDR");
  if (!address || (*address != "localhost" && *address != "::1" && !address->starts_with("127."))) return std::nullopt;
  auto rank = number(environment("LOCAL_RANK"));
  if (!rank) rank = number(environment("RANK"));
  return checked(rank, number(environment("WORLD_SIZE")));
}

}  // namespace

LocalRanks local_ranks(const Environment& environment) {
  for (const Names& names : kLaunchers)
    if (const auto count = environment(names.count); count && !count->empty())
      return checked(number(environment(names.rank)), number(count)).value_or(LocalRanks());
  if (const auto ranks = slurm_ranks(environment)) return *ranks;
  return ranks_that_meet_here(environment).value_or(LocalRanks());
}

LocalRanks local_ranks() {
  return local_ranks([](const char* name) -> std::optional<std::string> {
    const char* text = std::getenv(name);
    return text == nullptr ? std::nullopt : std::optional<std::string>(text);
  });
}

int sharing_ranks(int bound, int around, const LocalRanks& ranks) {
  return bound <= std::max(around / ranks.count, 1) ? 1 : ranks.count;
}

int sharing_ranks(const std::string& root) {
  const CpuLimits limits = cpu_limits(root);
  return sharing_ranks(static_cast<int>(limits.allowed.size()), limits.around, local_ranks());
}

int share_of_cpus(int usable, int bound, int around, const LocalRanks& ranks) {
  return std::max(usable / sharing_ranks(bound, around, ranks), 1);
}

int share_of_cpus(const std::string& root) {
  const CpuLimits limits = cpu_limits(root);
  return share_of_cpus(limits.threads(), static_cast<int>(limits.allowed.size()), limits.around, local_ranks());
}

}  // namespace feedline::base
