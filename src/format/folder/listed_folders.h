// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folders that a listing went through, with their times, as a part of the index that is kept of it: files that
// come, go or are renamed change the time of their folder, and bytes inside a file, which a listing says nothing about,
// do not.

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/folder/text_list.h"
#include "storage/storage.h"

namespace feedline::format {

struct ListedFolder {
  std::string path;          // relative to the root; empty: the root
  storage::ObjectStat stat;  // from before it was listed
};

// Views of a table.
struct ListedFolders {
  struct Stat {
    std::uint64_t bytes;
    std::int64_t mtime_ns;
  };

  TextList names;               // the folders' paths among others
  std::uint64_t first = 0;      // of them
  std::span<const Stat> stats;  // one for each folder

  // Has no folder another time by now, or another size? Where folders have no times (Storage::has_flat_names()), the
  // root's is that of the listing: is it no older than `age`?
  bool is_current(const storage::Storage& storage, const std::string& root, std::chrono::seconds age) const;
  // Did none change so shortly before `listed`, or since, that it may do so again without another time?
  bool is_settled(const storage::Storage& storage, std::chrono::system_clock::time_point listed) const;
};

std::vector<ListedFolders::Stat> stats_of(std::span<const ListedFolder> folders);

// Samples from which on an index is kept unasked: fewer are listed within some milliseconds.
constexpr std::uint64_t kWorthAnIndex = 10'000;
// Is the listing worth keeping? directory: what the user chose for it.
bool is_worth_keeping(const storage::Storage& storage, std::uint64_t samples, const std::string& directory);

// The time of a listing, in place of its root's: see ListedFolders::is_current().
ListedFolder listed_now();
// For explain(): why an index that is kept is good enough.
std::string kept_listing_text(const storage::Storage& storage, const ListedFolders& folders);

std::string without_end_slashes(std::string path);

}  // namespace feedline::format
