// SPDX-License-Identifier: Apache-2.0
#pragma once

// Walks the tree of an LMDB file page by page, to find the positions of all values and any damage.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/lmdb/lmdb_page.h"
#include "format/shards/finding.h"
#include "storage/reader.h"

namespace feedline::format {

// The values of a database. Every value is inside a frame that identifies it and is checked on each read: either the
// value's node, which includes the key, or separate pages with a header.
struct LmdbTable {
  static constexpr std::uint64_t kOnOwnPages = std::uint64_t{1} << 63;

  std::vector<std::uint64_t> locations;    // offsets of the frames in the file, sorted by key; with kOnOwnPages for
                                           // frames of pages
  std::vector<std::uint32_t> value_bytes;  // sizes of the values, in the same order
  std::vector<std::uint64_t> key_ends;     // ends of the keys in `keys`
  std::string keys;

  std::size_t size() const { return locations.size(); }
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

// Reads each branch and leaf page in use exactly once, even in a damaged file. Does not read overflow pages. If the
// only entry of the file is a named database, walks its tree instead. Adds damage to `findings` and skips the tree
// below a damaged page. Fails if the storage fails or the meta pages are damaged. If `is_remote`, sends many reads in
// parallel.
Result<LmdbWalk> walk_lmdb(const storage::Reader& reader, std::uint64_t bytes, const std::string& shard, bool is_remote,
                           Findings& findings);

}  // namespace feedline::format
