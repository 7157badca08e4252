// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the tree of an LMDB file page by page, and finds the positions of values and any damage.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/finding.h"
#include "format/lmdb/lmdb_page.h"
#include "storage/reader.h"

namespace feedline::format {

// Every value is stored in a frame that identifies it and that is checked on each read: either its node, which includes
// the key, or its own pages with their header.
struct LmdbTable {
  static constexpr std::uint64_t kOnOwnPages = std::uint64_t{1} << 63;

  std::vector<std::uint64_t> places;       // offsets of the frames in the file, sorted by key; with kOnOwnPages for
                                           // frames of pages
  std::vector<std::uint32_t> value_bytes;  // sizes of the values, in the same order
  std::vector<std::uint64_t> key_ends;     // ends of the keys in `keys`
  std::string keys;

  std::size_t size() const { return places.size(); }
  std::string_view key(std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : key_ends[i - 1];
    return std::string_view(keys).substr(begin, key_ends[i] - begin);
  }
};

struct LmdbWalk {
  LmdbMeta meta;
  std::uint16_t flags = 0;  // flags of the database
  LmdbTable table;
};

// Reads each branch and leaf page in use exactly once, even in a damaged file; reads no overflow pages. If the file's
// only entry is a named database, walks that one. Damage is added to `findings`, and the tree below a damaged page is
// skipped. Returns an error if the storage fails or the meta pages are damaged. is_remote: issue many reads in
// parallel.
Result<LmdbWalk> walk_lmdb(const storage::Reader& reader, std::uint64_t bytes, const std::string& shard, bool is_remote,
                           Findings& findings);

}  // namespace feedline::format
