// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folders of a listing and their modification times, stored in the index. Adding, deleting or renaming a file
// changes the time of its folder; changing the bytes inside a file does not, and does not affect the listing.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/folder/text_list.h"
#include "storage/storage.h"

namespace feedline::format {

struct ListedFolder {
  std::string path;          // relative to the root; empty for the root
  storage::ObjectStat stat;  // read before the folder was listed
};

// Views into a table.
struct ListedFolders {
  struct Stat {
    std::uint64_t bytes;
    std::int64_t mtime_ns;
  };

  TextList names;               // contains the folders' paths
  std::uint64_t first = 0;      // index of the first folder's path in `names`
  std::span<const Stat> stats;  // one per folder

  // Returns whether no folder has changed its time or size. If folders have no times (Storage::has_flat_names()), the
  // root's time is that of the listing; returns whether the listing is no older than `age`.
  bool is_current(const storage::Storage& storage, const std::string& root, std::chrono::seconds age) const;
  // Returns whether all folders changed long enough before `listed` that a further change would change their time.
  bool is_settled(const storage::Storage& storage, std::chrono::system_clock::time_point listed) const;
};

std::vector<ListedFolders::Stat> stats_of(std::span<const ListedFolder> folders);

// Smallest number of samples for which an index is stored by default; fewer are listed within milliseconds.
constexpr std::uint64_t kWorthAnIndex = 10'000;
// Returns whether the listing is worth storing. `directory` is the user's cache directory, or empty.
bool is_worth_keeping(const storage::Storage& storage, std::uint64_t samples, const std::string& directory);

// Returns an entry with the time of the listing instead of the root's time; see ListedFolders::is_current().
ListedFolder listed_now();
// Returns why the stored index is current, for explain().
std::string persisted_listing_text(const storage::Storage& storage, const ListedFolders& folders);

std::string without_end_slashes(std::string path);

}  // namespace feedline::format
