// SPDX-License-Identifier: Apache-2.0
#include "format/folder/listed_folders.h"

#include <algorithm>

namespace feedline::format {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds since_1970() { return std::chrono::system_clock::now().time_since_epoch(); }

// Returns the age of the listing, which is negative if the clock has been set back.
std::chrono::nanoseconds age_of(const ListedFolders::Stat& listing) {
  return since_1970() - std::chrono::nanoseconds(listing.mtime_ns);
}

}  // namespace

bool ListedFolders::is_current(const storage::Storage& storage, const std::string& root,
                               std::chrono::seconds age) const {
  if (storage.has_flat_names()) return !stats.empty() && age_of(stats[0]) >= 0ns && age_of(stats[0]) < age;
  for (std::size_t i = 0; i < stats.size(); ++i) {
    const std::string_view path = names[first + i];
    const auto stat = storage.stat(path.empty() ? root : std::string(root).append("/").append(path));
    if (!stat || *stat != storage::ObjectStat{stats[i].bytes, stats[i].mtime_ns}) return false;
  }
  return true;
}

// If a folder changes twice within one tick of its file system's clock, the second change does not update its
// modification time. The coarsest clocks tick every two seconds.
bool ListedFolders::is_settled(const storage::Storage& storage, std::chrono::system_clock::time_point listed) const {
  if (storage.has_flat_names()) return true;
  constexpr auto kCoarsestTick = std::chrono::seconds(2);
  const auto settled = (listed - kCoarsestTick).time_since_epoch();
  return std::ranges::all_of(stats,
                             [&](const Stat& stat) { return std::chrono::nanoseconds(stat.mtime_ns) < settled; });
}

bool is_worth_keeping(const storage::Storage& storage, std::uint64_t samples, const std::string& directory) {
  return storage.is_remote() || !directory.empty() || samples >= kWorthAnIndex;
}

ListedFolder listed_now() { return {"", {0, since_1970().count(), 0}}; }

std::string persisted_listing_text(const storage::Storage& storage, const ListedFolders& folders) {
  if (!storage.has_flat_names()) return "listed from the stored index; no folder has changed since";
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(age_of(folders.stats[0])).count();
  return "listed from the stored index, " + std::to_string(minutes) + (minutes == 1 ? " minute" : " minutes") +
         " old; listing_age=0 lists again";
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
