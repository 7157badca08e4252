// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folders in a listing and their modification times, which are stored in the index. Adding, deleting or renaming a
// file updates the modification time of its folder. Changing the contents of a file does not update this time, but does
// not affect the listing either.

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

// The folders in a stored index, as views of its table.
struct ListedFolders {
  struct Stat {
    std::uint64_t bytes;
    std::int64_t mtime_ns;
  };

  TextList names;               // contains the folders' paths
  std::uint64_t first = 0;      // index of the first folder's path in `names`
  std::span<const Stat> stats;  // one per folder

  // Returns whether the modification times and sizes of all folders are unchanged. If folders have no modification
  // times (Storage::has_flat_names()), returns whether the listing is younger than `age`; the root's time is then the
  // time of the listing.
  bool is_current(const storage::Storage& storage, const std::string& root, std::chrono::seconds age) const;
  // Returns whether all folders were last changed so long before `listed` that another change would update their
  // modification times.
  bool is_settled(const storage::Storage& storage, std::chrono::system_clock::time_point listed) const;
};

std::vector<ListedFolders::Stat> stats_of(std::span<const ListedFolder> folders);

// The minimum number of samples for which an index is stored by default. Smaller folders are listed in milliseconds.
constexpr std::uint64_t kWorthAnIndex = 10'000;
// Returns whether the listing is worth storing. `directory` is the user's cache directory, or empty.
bool is_worth_keeping(const storage::Storage& storage, std::uint64_t samples, const std::string& directory);

// Returns an entry for the root with the current time, for storage in which folders have no modification times; see
// ListedFolders::is_current().
ListedFolder listed_now();
// Returns the reason why the stored index is considered current, for explain().
std::string persisted_listing_text(const storage::Storage& storage, const ListedFolders& folders);

std::string without_end_slashes(std::string path);

}  // namespace feedline::format
