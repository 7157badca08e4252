// SPDX-License-Identifier: Apache-2.0
#include "format/folder/listed_folders.h"

#include <algorithm>

namespace feedline::format {

bool ListedFolders::is_current(const storage::Storage& storage, const std::string& root) const {
  for (std::size_t i = 0; i < stats.size(); ++i) {
    const std::string_view path = names[first + i];
    const auto stat = storage.stat(path.empty() ? root : std::string(root).append("/").append(path));
    if (!stat || *stat != storage::ObjectStat{stats[i].bytes, stats[i].mtime_ns}) return false;
  }
  return true;
}

// A folder that changes twice within one tick of its file system's clock has the same time both times: what was
// changed just now may change once more unseen. The coarsest clocks tick every two seconds.
bool ListedFolders::is_settled(std::chrono::system_clock::time_point listed) const {
  constexpr auto kCoarsestTick = std::chrono::seconds(2);
  const auto settled = (listed - kCoarsestTick).time_since_epoch();
  return std::ranges::all_of(stats,
                             [&](const Stat& stat) { return std::chrono::nanoseconds(stat.mtime_ns) < settled; });
}

std::vector<ListedFolders::Stat> stats_of(std::span<const ListedFolder> folders) {
  std::vector<ListedFolders::Stat> stats;
  for (const ListedFolder& folder : folders) stats.push_back({folder.stat.bytes, folder.stat.mtime_ns});
  return stats;
}

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace feedline::format
