// SPDX-License-Identifier: Apache-2.0
#pragma once

// From page to page through the tree of an LMDB file: where its values are, and what is wrong with it.

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

// A key's value lies in a frame that says what it is, which is compared whenever one is read: its node, with the key;
// or its own pages, with their header.
struct LmdbTable {
  static constexpr std::uint64_t kOnOwnPages = std::uint64_t{1} << 63;

  std::vector<std::uint64_t> places;       // of the frames in the file, by key; with kOnOwnPages of pages
  std::vector<std::uint32_t> value_bytes;  // likewise
  std::vector<std::uint64_t> key_ends;     // in keys
  std::string keys;

  std::size_t size() const { return places.size(); }
  std::string_view key(std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : key_ends[i - 1];
    return std::string_view(keys).substr(begin, key_ends[i] - begin);
  }
};

struct LmdbWalk {
  LmdbMeta meta;
  std::uint16_t flags = 0;  // of the database
  LmdbTable table;
};

// Reads every branch and leaf page that is in use, and of values only what lies in these; each page once, whatever the
// file says. Of a file whose one entry is a named database: that. What is wrong goes to `findings`, and what lies below
// a damaged page is left out. An error is one of the storage, or of the meta pages. is_remote: many reads at a time.
Result<LmdbWalk> walk_lmdb(const storage::Reader& reader, std::uint64_t bytes, const std::string& shard, bool is_remote,
                           Findings& findings);

}  // namespace feedline::format
