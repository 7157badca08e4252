// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the indexes that other programs store next to a tar. These indexes have similar names, so
// they are distinguished by their contents:
//
//     DALI, x.idx          text: "v1.2 SAMPLES", then a line per sample with EXTENSION OFFSET BYTES NAME of each file;
//                          v1.1 has no names
//     Energon, x.tar.idx   u64 offset of each sample's first header, and of the last sample's end
//
// Only a DALI v1.2 index can replace a scan. All other indexes lack names, which are needed for the keys of samples.

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/index/shard_reader.h"
#include "format/shards/finding.h"
#include "format/tar/shard_index.h"
#include "format/tar/tar_header.h"

namespace feedline::format {

// A file of a sample in an index. In DALI's v1.1, the name is empty, because only extensions are stored.
struct ListedMember {
  std::string extension, name;
  std::uint64_t offset = 0, bytes = 0;
};
struct ListedMembers {
  bool has_names = false;
  std::vector<ListedMember> members;
  std::vector<std::size_t> first_members;  // per sample
};

bool is_dali_index(std::string_view text);
// Returns the members, or the reason why the text is not an index of a shard of this size.
std::expected<ListedMembers, std::string> parse_dali_index(std::string_view text, std::uint64_t shard_bytes);
// Returns the offset at which each sample begins, and the offset at which the last sample ends.
std::expected<std::vector<std::uint64_t>, std::string> parse_energon_index(std::string_view bytes,
                                                                           std::uint64_t shard_bytes);

struct ListedIndex {
  std::optional<ShardIndex> index;       // the same index as from a scan of the shard
  std::string path;                      // path of the other program's index
  std::vector<std::string> not_fitting;  // one sentence per index that does not match the shard
};

// Finds a DALI v1.2 index next to the shard and compares it with the shard. Every block of the archive up to the end
// marker must belong to a listed member, no sample may be repeated, and some headers, including the first and the last,
// must match. Other headers are compared when their members are read. `storage` contains the index and the shard under
// its name.
ListedIndex find_listed_index(const storage::Storage& storage, const ShardFile& shard, const storage::Reader& reader);

// Compares other programs' indexes next to the shard with a scan, and reports differences as findings.
void compare_listed_indexes(const storage::Storage& storage, const ShardFile& shard, const ShardIndex& scanned,
                            Findings& findings);

// Returns the reason why the block before a member's payload is not its header, or an empty string if it is.
std::string differs(TarBlock block, std::string_view key, std::string_view extension, std::uint64_t bytes);

}  // namespace feedline::format
