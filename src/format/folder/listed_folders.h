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

  // Has no folder another time by now, or another size?
  bool is_current(const storage::Storage& storage, const std::string& root) const;
  // Did none change so shortly before `listed`, or since, that it may do so again without another time?
  bool is_settled(std::chrono::system_clock::time_point listed) const;
};

std::vector<ListedFolders::Stat> stats_of(std::span<const ListedFolder> folders);

// Samples from which on an index is kept unasked: fewer are listed within some milliseconds.
constexpr std::uint64_t kWorthAnIndex = 10'000;

std::string without_end_slashes(std::string path);

}  // namespace feedline::format
