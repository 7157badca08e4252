// SPDX-License-Identifier: Apache-2.0
#include "base/group_limits.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <ranges>
#include <sstream>

namespace feedline::base {
namespace {

constexpr int kMostCpus = 1 << 16;
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;  // version 1 represents "no limit" by a number near 2^63

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the first word as a number; nullopt for "max", -1 or a missing file.
std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::string text = text_of(path);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Returns the number after a key in a file of key-value pairs.
std::optional<std::uint64_t> number_behind(const std::string& path, std::string_view key) {
  std::istringstream words(text_of(path));
  std::string word;
  for (std::uint64_t value = 0; words >> word >> value;)
    if (word == key) return value;
  return std::nullopt;
}

void take_least(auto& least, const auto& value) {
  if (value) least = least ? std::min(*least, *value) : *value;
}

std::optional<double> quota_of(const ControlGroup& group) {
  if (group.version == 2) {  // "quota period", or "max period"
    std::istringstream words(text_of(group.folder + "/cpu.max"));
    double quota = 0, period = 0;
    if (words >> quota >> period && quota > 0 && period > 0) return quota / period;
    return std::nullopt;
  }
  const auto quota = number_in(group.folder + "/cpu.cfs_quota_us"),
             period = number_in(group.folder + "/cpu.cfs_period_us");
  if (!quota || *quota == 0 || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// Returns the limit at which the OOM killer acts.
std::optional<std::uint64_t> hard_limit_of(const ControlGroup& group) {
  if (group.version == 2) return number_in(group.folder + "/memory.max");
  const auto limit = number_in(group.folder + "/memory.limit_in_bytes");
  return limit && *limit < kUnlimited ? limit : std::nullopt;
}

std::optional<std::uint64_t> limit_of(const ControlGroup& group) {
  auto limit = hard_limit_of(group);
  if (group.version == 2) take_least(limit, number_in(group.folder + "/memory.high"));
  return limit;
}

std::optional<std::uint64_t> swap_limit_of(const ControlGroup& group) {
  if (group.version == 2) return number_in(group.folder + "/memory.swap.max");
  const auto both = number_in(group.folder + "/memory.memsw.limit_in_bytes"), memory = limit_of(group);
  if (!both || *both >= kUnlimited || !memory || *both < *memory) return std::nullopt;
  return *both - *memory;
}

// Returns the memory usage without reclaimable page cache. In version 1, only the "total_" values include descendant
// groups.
std::optional<std::uint64_t> used_by(const ControlGroup& group) {
  const auto held = number_in(group.folder + (group.version == 2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!held) return std::nullopt;
  std::optional<std::uint64_t> cache;
  if (group.version == 1) cache = number_behind(group.folder + "/memory.stat", "total_inactive_file");
  if (!cache) cache = number_behind(group.folder + "/memory.stat", "inactive_file");
  return *held - std::min(*held, cache.value_or(0));
}

std::optional<std::uint64_t> oom_kills_of(const ControlGroup& group) {
  return number_behind(group.folder + (group.version == 2 ? "/memory.events" : "/memory.oom_control"), "oom_kill");
}

std::vector<int> cpuset_of(const ControlGroup& group) {
  for (const char* file : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"})
    if (auto cpus = number_list(text_of(group.folder + file)); !cpus.empty()) return cpus;
  return {};
}

std::uint64_t left_of(std::uint64_t limit, const std::optional<std::uint64_t>& used) {
  return limit - std::min(limit, used.value_or(0));
}

void narrow(GroupMemory& memory, std::uint64_t limit, const std::optional<std::uint64_t>& used) {
  take_least(memory.limit_bytes, std::optional(limit));
  if (memory.binding_bytes && left_of(limit, used) >= left_of(*memory.binding_bytes, memory.used_bytes)) return;
  memory.binding_bytes = limit;
  memory.used_bytes = used;
}

// In version 1, limits may be non-hierarchical: memory.use_hierarchy is 0 in the ancestors.
bool binds_those_below(const ControlGroup& group) {
  return group.version == 2 || number_in(group.folder + "/memory.use_hierarchy") != std::uint64_t{0};
}

// Checks the process's own group first, then its ancestors, which also limit it.
template <typename Has>
std::vector<ControlGroup> own_and(const std::vector<ControlGroup>& around, Has has) {
  std::vector<ControlGroup> found;
  for (std::size_t i = 0; i < around.size(); ++i) {
    const bool own = i == 0 || around[i].version != around[i - 1].version;
    if (own || has(around[i])) found.push_back(around[i]);
  }
  return found;
}

}  // namespace

std::optional<double> quota_cpus(const ControlGroups& groups) {
  std::optional<double> least;
  for (const ControlGroup& group : groups.around("cpu")) take_least(least, quota_of(group));
  return least;
}

std::vector<ControlGroup> groups_with_quota(const ControlGroups& groups) {
  return own_and(groups.around("cpu"), [](const ControlGroup& group) { return quota_of(group).has_value(); });
}

// A group inherits unset values from its ancestors; the "effective" files include inherited values.
std::vector<int> cpuset(const ControlGroups& groups) {
  for (const ControlGroup& group : groups.around("cpuset"))
    if (auto cpus = cpuset_of(group); !cpus.empty()) return cpus;
  return {};
}

std::vector<int> outermost_cpuset(const ControlGroups& groups) {
  for (const ControlGroup& group : groups.around("cpuset") | std::views::reverse)
    if (auto cpus = cpuset_of(group); !cpus.empty()) return cpus;
  return {};
}

std::optional<std::uint64_t> throttled_ns(const ControlGroups& groups) {
  std::optional<std::uint64_t> total;
  for (const ControlGroup& group : groups.around("cpu")) {  // each group counts only throttling by its own quota
    const std::string file = group.folder + "/cpu.stat";
    if (const auto us = number_behind(file, "throttled_usec")) total = total.value_or(0) + *us * 1000;
    if (group.version == 1)
      if (const auto ns = number_behind(file, "throttled_time")) total = total.value_or(0) + *ns;
  }
  return total;
}

GroupMemory group_memory(const ControlGroups& groups) {
  GroupMemory memory;
  int own = 0;  // version of the hierarchy whose innermost group was found
  for (const ControlGroup& group : groups.around("memory")) {
    const bool is_own = group.version != own;
    own = group.version;
    if (is_own && !memory.oom_kills) memory.oom_kills = oom_kills_of(group);
    if (!is_own && !binds_those_below(group)) continue;
    take_least(memory.limit_bytes, limit_of(group));
    if (const auto limit = hard_limit_of(group)) narrow(memory, *limit, used_by(group));
    take_least(memory.swap_limit_bytes, swap_limit_of(group));
    if (!is_own || group.version != 1) continue;
    // limits set above the mount's root, of which only the value is visible
    const auto above = number_behind(group.folder + "/memory.stat", "hierarchical_memory_limit");
    if (above && *above < kUnlimited) narrow(memory, *above, used_by(group));
  }
  return memory;
}

std::vector<ControlGroup> groups_with_memory_limit(const ControlGroups& groups) {
  return own_and(groups.around("memory"),
                 [](const ControlGroup& group) { return binds_those_below(group) && limit_of(group).has_value(); });
}

std::vector<int> number_list(std::string_view text) {
  std::vector<int> numbers;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (next < end) {
    int first = 0, last = 0;
    auto [rest, error] = std::from_chars(next, end, first);
    if (error != std::errc()) break;
    last = first;
    if (rest < end && *rest == '-') {
      const auto second = std::from_chars(rest + 1, end, last);
      if (second.ec != std::errc()) break;
      rest = second.ptr;
    }
    for (int i = first; i <= std::min(last, kMostCpus); ++i) numbers.push_back(i);
    next = rest < end && *rest == ',' ? rest + 1 : end;
  }
  return numbers;
}

}  // namespace feedline::base
